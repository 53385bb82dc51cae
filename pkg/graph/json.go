package graph

import (
	"encoding/json"
	"io"
)

// JSON writes the graph itself.
func JSON(w io.Writer, g *Graph) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(g)
}
