package strictyaml

import "strings"

// Nearest returns the known word that is closest to word, or "" if none is
// close: the only one that word begins, or the one with the least letters that differ,
// at most a third, one in words of three, none in shorter ones.
// Case, and hyphen or underscore, make no difference.
func Nearest(word string, known []string) string {
	if whole := completion(word, known); whole != "" {
		return whole
	}
	allowed := (len(word) + 1) / 3
	if len(word) < 3 {
		allowed = 0
	}
	best, bestDistance := "", allowed+1
	for _, k := range known {
		distance := editDistance(strings.ToLower(word), strings.ToLower(k), bestDistance+1)
		if distance < bestDistance || (distance == bestDistance && best != "" && k < best) {
			best, bestDistance = k, distance
		}
	}
	return best
}

// completion returns the only known word that begins with word, which has four letters
// or more.
func completion(word string, known []string) string {
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
	found := ""
	for _, k := range known {
		if len(word) >= 4 && strings.HasPrefix(plain(k), plain(word)) {
			if found != "" {
				return ""
			}
			found = k
		}
	}
	return found
}

// editDistance is the Damerau-Levenshtein distance (adjacent swaps count once),
// or limit if it is not below that. "-" and "_" count as the same letter.
func editDistance(a, b string, limit int) int {
	a, b = strings.ReplaceAll(a, "_", "-"), strings.ReplaceAll(b, "_", "-")
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return min(prev[len(b)], limit)
}
