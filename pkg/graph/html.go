package graph

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/c9s-lab/c9s/pkg/lab"
)

//go:embed page.html.tmpl
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// The drawing's measures, in pixels.
const (
	boxWidth  = 132
	boxHeight = 46
	gapX      = 72
	gapY      = 128
	margin    = 40
)

// box is a node with its place.
type box struct {
	Node
	Index int
	X, Y  float64
	Color template.CSS
	Title string
}

// CX and CY are the middle of the box.
func (b box) CX() float64 { return b.X + boxWidth/2 }

// CY is the vertical middle of the box.
func (b box) CY() float64 { return b.Y + boxHeight/2 }

// curve is an edge as a path, with the places of its two labels.
type curve struct {
	Edge
	Path           string
	AX, AY, BX, BY float64
	Dashed         bool
	Title          string
	// points are the start, the control point and the end of the curve.
	points [3][2]float64
}

// place puts the two labels at their distances from the ends, in pixels.
func (c *curve) place(fromStart, fromEnd float64) {
	if c.From == c.To {
		return
	}
	p := c.points
	c.AX, c.AY = along(p[0][0], p[0][1], p[1][0], p[1][1], p[2][0], p[2][1], fromStart)
	c.BX, c.BY = along(p[2][0], p[2][1], p[1][0], p[1][1], p[0][0], p[0][1], fromEnd)
}

type kindColor struct {
	Kind  string
	Color template.CSS
	Count int
}

// HTML writes a page that needs nothing else: an SVG drawing with a legend;
// pointing at a node shows its links.
func HTML(w io.Writer, g *Graph) error {
	widest := 1
	for _, row := range g.Levels {
		widest = max(widest, len(row))
	}
	width := float64(widest*(boxWidth+gapX)-gapX) + 2*margin
	height := float64(len(g.Levels)*(boxHeight+gapY)-gapY) + 2*margin
	boxes := make([]box, len(g.Nodes))
	counts := map[string]int{}
	colors := kindColors(g)
	for y, row := range g.Levels {
		rowWidth := float64(len(row)*(boxWidth+gapX) - gapX)
		for x, i := range row {
			n := g.Nodes[i]
			boxes[i] = box{
				Node: n, Index: i, Color: colors[n.Kind],
				X:     (width-rowWidth)/2 + float64(x*(boxWidth+gapX)),
				Y:     margin + float64(y*(boxHeight+gapY)),
				Title: title(n),
			}
			if !n.Outside {
				counts[n.Kind]++
			}
		}
	}
	var legend []kindColor
	for kind, n := range counts {
		legend = append(legend, kindColor{kind, colors[kind], n})
	}
	slices.SortFunc(legend, func(a, b kindColor) int {
		if a.Kind < b.Kind {
			return -1
		}
		return 1
	})
	return page.Execute(w, map[string]any{
		"Name": g.Name, "Width": math.Ceil(width), "Height": math.Ceil(height),
		"Boxes": boxes, "Curves": curves(g, boxes), "Legend": legend,
		"BoxWidth": boxWidth, "BoxHeight": boxHeight,
		"Nodes": len(g.Nodes) - outsideCount(g), "Links": len(g.Edges),
	})
}

func outsideCount(g *Graph) int {
	n := 0
	for _, node := range g.Nodes {
		if node.Outside {
			n++
		}
	}
	return n
}

func title(n Node) string {
	if n.Outside {
		return n.Name
	}
	text := n.Name + "\nkind " + n.Kind
	for _, part := range []struct{ name, value string }{{"type", n.Type}, {"group", n.Group}, {"image", n.Image}, {"management", n.Mgmt}} {
		if part.value != "" {
			text += "\n" + part.name + " " + part.value
		}
	}
	return text
}

// kindColors gives each kind of the graph a hue, as far apart as they can be. What
// is outside the lab has no kind and is grey.
func kindColors(g *Graph) map[string]template.CSS {
	colors := map[string]template.CSS{}
	for _, n := range g.Nodes {
		colors[n.Kind] = ""
	}
	delete(colors, "")
	for i, kind := range slices.Sorted(maps.Keys(colors)) {
		colors[kind] = template.CSS(fmt.Sprintf("hsl(%d 62%% 86%%)", (190+i*360/len(colors))%360))
	}
	colors[""] = "hsl(0 0% 92%)"
	return colors
}

// curves draws the edges; parallel ones are fanned out.
func curves(g *Graph, boxes []box) []curve {
	type pair struct{ a, b int }
	total, drawn := map[pair]int{}, map[pair]int{}
	key := func(e Edge) pair { return pair{min(e.From, e.To), max(e.From, e.To)} }
	for _, e := range g.Edges {
		total[key(e)]++
	}
	out := make([]curve, 0, len(g.Edges))
	ports := make([]int, len(g.Nodes))
	for _, e := range g.Edges {
		k := key(e)
		nth := drawn[k]
		drawn[k]++
		c := draw(e, boxes[e.From], boxes[e.To], float64(nth)-float64(total[k]-1)/2)
		c.place(labelDistance(ports[e.From]), labelDistance(ports[e.To]))
		ports[e.From]++
		ports[e.To]++
		out = append(out, c)
	}
	return out
}

// labelDistance is how far from the box the label of a node's nth link stands:
// in turn at three distances, so that neighbours do not cover each other.
func labelDistance(nth int) float64 { return 20 + float64(nth%3)*15 }

// draw makes one edge's path. offset is its place among parallel edges.
func draw(e Edge, a, b box, offset float64) curve {
	c := curve{Edge: e, Dashed: e.Type != lab.LinkVeth && e.Type != lab.LinkVethStitch}
	c.Title = fmt.Sprintf("%s:%s - %s:%s (%s)", a.Name, e.FromIf, b.Name, e.ToIf, e.Type)
	if e.From == e.To { // a self-link: a loop over the box
		x, y := a.CX()+offset*20, a.Y
		c.Path = fmt.Sprintf("M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f", x-18, y, x-40, y-56, x+40, y-56, x+18, y)
		c.AX, c.AY, c.BX, c.BY = x-34, y-14, x+34, y-14
		return c
	}
	dx, dy := b.CX()-a.CX(), b.CY()-a.CY()
	length := math.Hypot(dx, dy)
	px, py := -dy/length, dx/length // across the edge
	bend := offset * 46
	if math.Abs(dy) < 1 && math.Abs(dx) > boxWidth+gapX+1 { // over the boxes of the same row
		bend += 70
	}
	if e.From > e.To { // parallel edges bend the same way whatever their direction
		bend = -bend
	}
	mx, my := (a.CX()+b.CX())/2+px*bend, (a.CY()+b.CY())/2+py*bend
	ax, ay := border(a, mx, my)
	bx, by := border(b, mx, my)
	c.Path = fmt.Sprintf("M%.1f %.1f Q%.1f %.1f %.1f %.1f", ax, ay, mx, my, bx, by)
	c.points = [3][2]float64{{ax, ay}, {mx, my}, {bx, by}}
	return c
}

// border is where the line from a box's middle to (x, y) leaves the box.
func border(b box, x, y float64) (float64, float64) {
	dx, dy := x-b.CX(), y-b.CY()
	if dx == 0 && dy == 0 {
		return b.CX(), b.CY()
	}
	t := math.Min(boxWidth/2/math.Max(math.Abs(dx), 1e-9), boxHeight/2/math.Max(math.Abs(dy), 1e-9))
	return b.CX() + dx*t, b.CY() + dy*t
}

// along is the point of a quadratic curve about distance pixels from its start.
func along(x0, y0, cx, cy, x1, y1, distance float64) (float64, float64) {
	length := math.Hypot(cx-x0, cy-y0) + math.Hypot(x1-cx, y1-cy)
	t := math.Min(distance/math.Max(length, 1), 0.35)
	u := 1 - t
	return u*u*x0 + 2*u*t*cx + t*t*x1, u*u*y0 + 2*u*t*cy + t*t*y1
}
