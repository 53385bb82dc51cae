package diag

import "strconv"

// Count is n and the word for it: "1 file", "2 files".
func Count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}
