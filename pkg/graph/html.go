package graph

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
)

// The page, its style and its script are one file for the user: it needs nothing else.
var (
	//go:embed page/page.html.tmpl
	pageText string
	//go:embed page/page.css
	pageStyle string
	//go:embed page/page.js
	pageScript string
)

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// HTML writes a page that needs nothing else. It shows the graph as it is now.
func HTML(w io.Writer, g *Graph) error { return Page(w, g, "", "") }

// Page writes the page of a graph. One with the URL of events follows the changes that they
// report. nonce is what the Content-Security-Policy of the page calls for, "" for none.
func Page(w io.Writer, g *Graph, events, nonce string) error {
	data, err := json.Marshal(g) // it escapes what would end the script
	if err != nil {
		return err
	}
	return pageTemplate.Execute(w, map[string]any{
		"Name": g.Name, "Events": events, "Nonce": nonce,
		"Style": template.CSS(pageStyle), "Script": template.JS(pageScript), "Data": template.JS(data),
	})
}
