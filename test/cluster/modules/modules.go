// Package modules holds the Go modules of the programs that a cluster runs, as go.mod and go.sum
// texts: one for nearly all of them, so that what they share is compiled once, and one for each
// program that does not fit into its module graph. Nothing that imports this package should see
// their dependencies.
//
// What they share has the same versions in all of them, in test/cluster/go.mod and in the go.mod of
// c9s, as far as possible: Go's build cache then serves all. TestShared holds client-go's
// dependencies to that.
//
// To update one: go get -modfile=programs.mod k8s.io/kubernetes@v1.36.4 in an otherwise empty
// module, or edit the version and let `go list -mod=mod -deps tool .` write the rest.
package modules

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

//go:embed *.mod *.sum *.go.txt
var files embed.FS

// Key names the versions of everything that is built: it changes when any
// module text changes.
func Key() string {
	h := sha256.New()
	names, err := fs.Glob(files, "*")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(h, "%s %d\n", name, len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// Version returns the version at which a module text requires a module.
func Version(module, path string) (string, error) {
	text, err := files.ReadFile(module + ".mod")
	if err != nil {
		return "", fmt.Errorf("no module %q: %w", module, err)
	}
	f, err := modfile.ParseLax(module+".mod", text, nil)
	if err != nil {
		return "", err
	}
	for _, r := range f.Require {
		if r.Mod.Path == path {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s.mod does not require %s", module, path)
}

// Write lays a module out in dir, ready for `go build`.
func Write(module, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	names, err := fs.Glob(files, module+".*")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		target := map[string]string{".mod": "go.mod", ".sum": "go.sum", ".go.txt": "main.go"}[strings.TrimPrefix(name, module)]
		if err := os.WriteFile(filepath.Join(dir, target), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
