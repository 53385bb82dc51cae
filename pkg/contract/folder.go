package contract

import "strings"

// FolderList is the file that lists what c9s wrote into a folder: one line per file
// with the SHA-256 of its contents, two spaces and its path, as sha256sum(1) prints
// them. Secrets have "-" for the digest: the list may be committed, and a digest
// would confirm a guess at the contents.
const FolderList = ".c9s-manifest"

// ReadFolderList parses a FolderList and returns the digests by path. It ignores
// comments.
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
