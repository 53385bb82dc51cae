//go:build !nocluster

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/status"
)

// TestGraphPicture draws the demo lab for the README.
func TestGraphPicture(t *testing.T) {
	var out, messages bytes.Buffer
	if code := Main([]string{"graph", "../../testdata/demo/demo.clab.yml", "-o", "svg"}, IO{Out: &out, Err: &messages}); code != ExitOK {
		t.Fatal(messages.String())
	}
	checkDoc(t, "../images/graph.svg", out.String())
}

// TestStatusPicture draws the status table of the demo lab for the README.
func TestStatusPicture(t *testing.T) {
	data, err := os.ReadFile("testdata/demo.status.json")
	if err != nil {
		t.Fatal(err)
	}
	var l status.Lab
	if err := json.Unmarshal(data, &l); err != nil {
		t.Fatal(err)
	}
	for i := range l.Nodes {
		l.Nodes[i].Started = time.Now().Add(-20*time.Minute - 30*time.Second)
	}
	var table bytes.Buffer
	if err := printStatus(&table, l, false); err != nil {
		t.Fatal(err)
	}
	checkDoc(t, "../images/status.svg", terminalPicture("c9s status", table.String()))
}

// terminalPicture draws the output of a command as a terminal shows it.
func terminalPicture(command, output string) string {
	const charWidth, lineHeight, margin = 8.43, 20, 16
	lines := strings.Split("$ "+command+"\n"+strings.TrimRight(output, "\n"), "\n")
	columns := 0
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
		columns = max(columns, len(lines[i]))
	}
	width, height := int(float64(columns)*charWidth)+2*margin, len(lines)*lineHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(command))
	fmt.Fprintln(&b, `<rect width="100%" height="100%" rx="8" fill="#1e1e2e"/>`)
	fmt.Fprintln(&b, `<g font-family="ui-monospace, 'DejaVu Sans Mono', monospace" font-size="14" fill="#e0e0e0">`)
	for i, line := range lines {
		if line != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve">%s</text>`+"\n", margin, margin+lineHeight*i+14, html.EscapeString(line))
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}
