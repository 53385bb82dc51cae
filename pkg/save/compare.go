package save

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// secrets are hashed passwords, as crypt and network devices write them: some devices use
// another salt each time they print one.
var secrets = regexp.MustCompile(`\$(?:1|2[aby]|5|6|8|9|14|y|ar|arf)\$[^\s";,]+`)

// Normal returns a configuration in a form in which two of them can be compared: without what
// differs between two outputs of the same configuration, and, for kinds whose order has no
// meaning, sorted.
func Normal(rule *kinds.Save, text []byte) (string, error) {
	if rule.Extension == "json" {
		if out, ok := normalJSON(text); ok {
			return out, nil
		}
	}
	text, err := drop(trimTerminal(text), slices.Concat(rule.Drop, rule.Ignore))
	if err != nil {
		return "", err
	}
	text = secrets.ReplaceAll(text, []byte("<secret>"))
	var lines []string
	for line := range bytes.Lines(text) {
		if bare := strings.TrimRight(string(line), " \t\r\n"); bare != "" {
			lines = append(lines, bare)
		}
	}
	if rule.Blocks {
		lines = sortBlocks(lines)
	}
	if len(lines) == 0 {
		return "", nil
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// normalJSON sorts the members of objects.
func normalJSON(text []byte) (string, bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return "", false
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return "", false
	}
	return secrets.ReplaceAllString(out.String(), "<secret>"), true
}

// sortBlocks sorts the lines that are not indented, each with the indented ones after it.
func sortBlocks(lines []string) []string {
	var blocks [][]string
	for _, line := range lines {
		if n := len(blocks); n > 0 && (line[0] == ' ' || line[0] == '\t') {
			blocks[n-1] = append(blocks[n-1], line)
		} else {
			blocks = append(blocks, []string{line})
		}
	}
	slices.SortStableFunc(blocks, slices.Compare)
	return slices.Concat(blocks...)
}

// Diff returns the difference of two configurations as a unified diff, "" for none.
func Diff(rule *kinds.Save, from string, a []byte, to string, b []byte) (string, error) {
	if !rule.Text() {
		if bytes.Equal(a, b) {
			return "", nil
		}
		return "Binary files " + from + " and " + to + " differ\n", nil
	}
	before, err := Normal(rule, a)
	if err != nil {
		return "", err
	}
	after, err := Normal(rule, b)
	if err != nil || before == after {
		return "", err
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: slices.Collect(strings.Lines(before)), B: slices.Collect(strings.Lines(after)), FromFile: from, ToFile: to, Context: 3,
	})
}
