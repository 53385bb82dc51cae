package graph

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"

	"github.com/c9s-lab/c9s/pkg/lab"
)

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

// curve is an edge as a path, with the labels at its ends that have a place.
type curve struct {
	Edge
	Path   string
	Labels []text
	Dashed bool
	Title  string
	Color  template.CSS
	// points are the start, the control point and the end of the curve.
	points [3][2]float64
}

// picture is a graph with the place of everything.
type picture struct {
	Name                string
	Width, Height       float64
	Boxes               []box
	Curves              []curve
	BoxWidth, BoxHeight int
}

func newPicture(g *Graph) picture {
	widest := 1
	for _, row := range g.Levels {
		widest = max(widest, len(row))
	}
	width := float64(widest*(boxWidth+gapX)-gapX) + 2*margin
	height := float64(max(1, len(g.Levels))*(boxHeight+gapY)-gapY) + 2*margin
	boxes := make([]box, len(g.Nodes))
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
			if n.Live != nil {
				boxes[i].Color = template.CSS(tones[n.Live.tone()].fill)
			}
		}
	}
	p := picture{Name: g.Name, Width: math.Ceil(width), Height: math.Ceil(height), Boxes: boxes, Curves: curves(g, boxes), BoxWidth: boxWidth, BoxHeight: boxHeight}
	p.label()
	return p
}

func title(n Node) string {
	if n.Outside {
		return n.Name
	}
	text := n.Name + "\nkind " + n.Kind
	parts := []struct{ name, value string }{{"type", n.Type}, {"group", n.Group}, {"image", n.Image}, {"management", n.Mgmt}}
	if n.Live != nil {
		parts = append(parts, struct{ name, value string }{"state", n.Live.State}, struct{ name, value string }{"worker", n.Live.Worker})
	}
	for _, part := range parts {
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
	for _, e := range g.Edges {
		k := key(e)
		nth := drawn[k]
		drawn[k]++
		out = append(out, draw(e, boxes[e.From], boxes[e.To], float64(nth)-float64(total[k]-1)/2))
	}
	return out
}

// draw makes one edge's path. offset is its place among parallel edges.
func draw(e Edge, a, b box, offset float64) curve {
	c := curve{Edge: e, Dashed: e.Type != lab.LinkVeth && e.Type != lab.LinkVethStitch}
	c.Title = fmt.Sprintf("%s:%s - %s:%s (%s)", a.Name, e.FromIf, b.Name, e.ToIf, e.Type)
	if e.Live != nil {
		c.Title += "\n" + e.Live.State
		c.Color = template.CSS(tones[e.Live.tone()].stroke)
	}
	if e.From == e.To { // a self-link: a loop over the box
		x, y := a.CX()+offset*20, a.Y
		c.Path = fmt.Sprintf("M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f", x-18, y, x-40, y-56, x+40, y-56, x+18, y)
		c.points = [3][2]float64{{x - 18, y}, {x, y - 70}, {x + 18, y}}
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
	t := math.Min(distance/math.Max(length, 1), 0.5)
	u := 1 - t
	return u*u*x0 + 2*u*t*cx + t*t*x1, u*u*y0 + 2*u*t*cy + t*t*y1
}
