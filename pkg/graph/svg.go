package graph

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed picture.svg.tmpl
var pictureText string

var pictureTemplate = template.Must(template.New("picture").Parse(pictureText))

// SVG writes a picture for documents: it has no scripts, and its style is its own.
func SVG(w io.Writer, g *Graph) error { return pictureTemplate.Execute(w, newPicture(g)) }
