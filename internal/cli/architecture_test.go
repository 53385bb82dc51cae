package cli

import (
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestArchitecture holds ARCHITECTURE.md to the code: its table has every package,
// and no package imports one of its own floor or of a higher one.
func TestArchitecture(t *testing.T) {
	const root, module = "../..", "github.com/c9s-lab/c9s/"
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	floors := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\d+) \\| .+ \\|$").FindAllStringSubmatch(string(page), -1) {
		if _, twice := floors[row[1]]; twice {
			t.Errorf("%s is in the table twice", row[1])
		}
		floors[row[1]], _ = strconv.Atoi(row[2])
	}
	seen := map[string]bool{}
	for _, tree := range []string{"cmd", "internal", "pkg", "sidecar"} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			rel, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			pkg := path.Dir(filepath.ToSlash(rel))
			floor, listed := floors[pkg]
			if !listed && !seen[pkg] {
				t.Errorf("%s is not in the table", pkg)
			}
			seen[pkg] = true
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range parsed.Imports {
				imported, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
				if ours && listed && floors[imported] >= floor {
					t.Errorf("%s (floor %d) imports %s (floor %d)", rel, floor, imported, floors[imported])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for pkg := range floors {
		if !seen[pkg] {
			t.Errorf("the table has %s, which does not exist", pkg)
		}
	}
}

// TestNoClusterClient holds the half of c9s that the first half of the demo builds (-tags nocluster) to
// what it needs: client-go takes as long to compile as all the rest.
func TestNoClusterClient(t *testing.T) {
	const module = "github.com/c9s-lab/c9s/"
	context := build.Default
	context.BuildTags = []string{"nocluster"}
	seen := map[string]bool{}
	var visit func(dir string)
	visit = func(dir string) {
		if seen[dir] {
			return
		}
		seen[dir] = true
		pkg, err := context.ImportDir(filepath.Join("../..", dir), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range pkg.Imports {
			if strings.HasPrefix(imported, "k8s.io/client-go") {
				t.Errorf("%s imports %s without a cluster", dir, imported)
			}
			if ours, ok := strings.CutPrefix(imported, module); ok {
				visit(ours)
			}
		}
	}
	visit("cmd/c9s")
	if len(seen) < 20 {
		t.Errorf("only %d packages were visited", len(seen))
	}
}
