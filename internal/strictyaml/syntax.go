package strictyaml

import (
	"errors"
	"io"
	"regexp"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/diag"
)

var (
	yamlPlace     = regexp.MustCompile(`^yaml: (?:(?:while .*)?line \d+: )?`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// SyntaxError turns an error of the YAML library into a diagnostic. The library
// gives the line of the enclosing construct at best; the position here is the
// first line with which the text from the beginning is no longer well-formed.
func SyntaxError(code diag.Code, file, text string, err error) diag.Diagnostic {
	message := yamlPlace.ReplaceAllString(err.Error(), "")
	line, column := breakingPlace(text)
	hint := "check indentation, quotes and colons around this line"
	switch {
	case strings.Contains(message, "cannot start any token"):
		hint = "indent with spaces, not tabs, and quote text that starts with % @ or `"
	case unknownAnchor.MatchString(message):
		name := unknownAnchor.FindStringSubmatch(message)[1]
		hint = "define it first with &" + name
	}
	return diag.Diagnostic{
		Code: code, Severity: diag.Error, Message: message, Hint: hint,
		Pos: diag.Pos{File: file, Line: line, Column: column},
	}
}

// breakingPlace finds the first line that makes the text above it and itself
// malformed, and the column of its first letter.
func breakingPlace(text string) (line, column int) {
	lines := strings.SplitAfter(text, "\n")
	n := sort.Search(len(lines), func(i int) bool {
		return !wellFormed(strings.Join(lines[:i+1], ""))
	})
	n = min(n, len(lines)-1)
	return n + 1, len(lines[n]) - len(strings.TrimLeft(lines[n], " \t")) + 1
}

// wellFormed reports whether every document of text can be read.
func wellFormed(text string) bool {
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}
