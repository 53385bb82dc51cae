package fabric

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").ParseFS(templateFiles, "templates/*"))

// render executes a template for a node.
func (n *Node) render(name string) (string, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, n); err != nil {
		return "", fmt.Errorf("node %s: %w", n.Name, err)
	}
	return strings.Trim(out.String(), "\n") + "\n", nil
}
