//go:build !nocluster

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/shlex"
)

// TestDocCommands parses every c9s command that the README and the guides print: the
// command exists, and so do its flags.
func TestDocCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, page := range append(pages, "../../README.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(strings.ReplaceAll(string(data), "\\\n", "")) {
			command, isCommand := docCommand(line)
			if !isCommand {
				continue
			}
			seen++
			words, err := shlex.Split(command)
			if err != nil {
				t.Errorf("%s: %s: %v", page, command, err)
				continue
			}
			cmd, rest, err := newRoot(IO{}).Find(words)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil || !cmd.Runnable() {
				t.Errorf("%s: c9s %s: %v", page, command, err)
			}
		}
	}
	if seen < 30 {
		t.Errorf("the pages print %d commands", seen)
	}
}

// docCommand returns the words after c9s of an indented line that runs it, without a
// comment or redirection.
func docCommand(line string) (string, bool) {
	text, indented := strings.CutPrefix(line, "    ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "$ "), "bin/")
	text, isCommand := strings.CutPrefix(text, "c9s ")
	text, _, _ = strings.Cut(text, " # ")
	text, _, _ = strings.Cut(text, " > ")
	return strings.TrimSpace(text), indented && isCommand
}
