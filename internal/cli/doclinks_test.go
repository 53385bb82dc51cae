package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocLinks follows every relative link of the Markdown pages: the file exists, and
// so does the heading.
func TestDocLinks(t *testing.T) {
	const root = "../.."
	pages := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == ".git" || e.Name() == "testdata" || e.Name() == "bin") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			pages[name] = false
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^()\s]+)\)`)
	read := func(page string) string {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		return withoutCode(string(data))
	}
	for page := range pages {
		for _, m := range link.FindAllStringSubmatch(read(page), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, m[1])
				continue
			}
			pages[file] = true
			if anchor != "" && !headings(read(file))[anchor] {
				t.Errorf("%s: the link %s names a heading that %s does not have", page, m[1], file)
			}
		}
	}
	for page, linked := range pages {
		if strings.HasPrefix(page, filepath.Join(root, "docs")) && !linked {
			t.Errorf("no page links to %s", page)
		}
	}
}

// withoutCode returns a page without its fenced blocks.
func withoutCode(page string) string {
	var kept []string
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// headings returns the anchors that GitHub gives the headings of a page.
func headings(page string) map[string]bool {
	anchors := map[string]bool{}
	dropped := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for line := range strings.Lines(page) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			title = dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			anchors[strings.ReplaceAll(title, " ", "-")] = true
		}
	}
	return anchors
}
