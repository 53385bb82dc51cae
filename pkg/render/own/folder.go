package own

import "strings"

// FolderList lists what c9s wrote into a folder: a line a file with the SHA-256
// of its contents, two spaces and its path, as sha256sum(1) has it. Of secrets it
// says "-": the list may be committed, and a digest tells whether a guess is right.
const FolderList = ".c9s-manifest"

// ReadFolderList reads such a list, as the digests by path. Comments are left out.
func ReadFolderList(data []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, name, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "  ")
		if ok && !strings.HasPrefix(line, "#") {
			out[name] = sum
		}
	}
	return out
}
