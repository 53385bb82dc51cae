package render

// Folder lays the output out as files, by slash-separated path: one file an
// object group, a kustomization, and the secrets in a folder of their own.
func Folder(out *Output) (map[string][]byte, error) { return nil, nil }

// FolderResult tells what WriteFolder did, by sorted path.
type FolderResult struct {
	Written, Unchanged, Removed []string
}

// WriteFolder makes dir hold files.
func WriteFolder(dir string, files map[string][]byte) (FolderResult, error) {
	return FolderResult{}, nil
}

// ApplyOverlay puts the kustomize overlay in overlayDir over files, a rendered
// folder in memory, and returns the resulting objects.
func ApplyOverlay(files map[string][]byte, overlayDir string) ([]Object, error) { return nil, nil }
