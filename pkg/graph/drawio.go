package graph

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
)

// The elements of a file of draw.io (https://www.drawio.com/doc/faq/diagram-source-edit).
type (
	mxFile struct {
		XMLName xml.Name  `xml:"mxfile"`
		Host    string    `xml:"host,attr"`
		Diagram mxDiagram `xml:"diagram"`
	}
	mxDiagram struct {
		ID    string  `xml:"id,attr"`
		Name  string  `xml:"name,attr"`
		Model mxModel `xml:"mxGraphModel"`
	}
	mxModel struct {
		Grid  int      `xml:"grid,attr"`
		Cells []mxCell `xml:"root>mxCell"`
	}
	mxCell struct {
		ID       string      `xml:"id,attr"`
		Parent   string      `xml:"parent,attr,omitempty"`
		Value    string      `xml:"value,attr,omitempty"`
		Style    string      `xml:"style,attr,omitempty"`
		Vertex   string      `xml:"vertex,attr,omitempty"`
		Edge     string      `xml:"edge,attr,omitempty"`
		Source   string      `xml:"source,attr,omitempty"`
		Target   string      `xml:"target,attr,omitempty"`
		Geometry *mxGeometry `xml:"mxGeometry,omitempty"`
	}
	mxGeometry struct {
		X        float64 `xml:"x,attr"`
		Y        float64 `xml:"y,attr,omitempty"`
		Width    int     `xml:"width,attr,omitempty"`
		Height   int     `xml:"height,attr,omitempty"`
		Relative int     `xml:"relative,attr,omitempty"`
		As       string  `xml:"as,attr"`
		// Points are what an edge goes through.
		Points *mxPoints `xml:"Array,omitempty"`
	}
	mxPoints struct {
		As     string    `xml:"as,attr"`
		Points []mxPoint `xml:"mxPoint"`
	}
	mxPoint struct {
		X float64 `xml:"x,attr"`
		Y float64 `xml:"y,attr"`
	}
)

// Drawio writes a file for draw.io and diagrams.net.
func Drawio(w io.Writer, g *Graph) error {
	p := newPicture(g)
	cells := []mxCell{{ID: "0"}, {ID: "1", Parent: "0"}}
	for i, b := range p.Boxes {
		t := tones[b.Live.tone()]
		style := "rounded=1;html=0;whiteSpace=wrap;"
		switch {
		case b.Outside:
			style += "dashed=1;"
		case b.Live != nil:
			style += "fillColor=" + t.fill + ";strokeColor=" + t.stroke + ";"
		}
		text := b.Name
		if b.Kind != "" {
			text += "\n" + b.Kind
		}
		cells = append(cells, mxCell{ID: fmt.Sprintf("n%d", i), Parent: "1", Value: text, Style: style, Vertex: "1",
			Geometry: &mxGeometry{X: b.X, Y: b.Y, Width: boxWidth, Height: boxHeight, As: "geometry"}})
	}
	for i, c := range p.Curves {
		id := fmt.Sprintf("l%d", i)
		style := "endArrow=none;html=0;curved=1;"
		if c.Dashed {
			style += "dashed=1;"
		}
		if c.Live != nil {
			style += "strokeColor=" + tones[c.Live.tone()].stroke + ";"
		}
		geometry := &mxGeometry{Relative: 1, As: "geometry"}
		if bent(c.points) {
			middle := c.points[1]
			geometry.Points = &mxPoints{As: "points", Points: []mxPoint{{math.Round(middle[0]), math.Round(middle[1])}}}
		}
		cells = append(cells, mxCell{ID: id, Parent: "1", Style: style, Edge: "1", Source: fmt.Sprintf("n%d", c.From), Target: fmt.Sprintf("n%d", c.To), Geometry: geometry})
		for _, end := range []struct {
			id, name string
			at       float64
		}{{"a", c.FromIf, -0.6}, {"b", c.ToIf, 0.6}} { // along the edge, from -1 to 1
			if end.name != "" {
				cells = append(cells, mxCell{ID: id + end.id, Parent: id, Value: end.name, Style: "edgeLabel;html=0;fontSize=10;", Vertex: "1",
					Geometry: &mxGeometry{X: end.at, Relative: 1, As: "geometry"}})
			}
		}
	}
	out := xml.NewEncoder(w)
	out.Indent("", " ")
	if err := out.Encode(mxFile{Host: "c9s", Diagram: mxDiagram{ID: "lab", Name: g.Name, Model: mxModel{Cells: cells}}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// bent reports whether a curve is not a straight line.
func bent(p [3][2]float64) bool {
	return math.Hypot((p[0][0]+p[2][0])/2-p[1][0], (p[0][1]+p[2][1])/2-p[1][1]) > 12
}
