package graph

import "math"

// text is a label at the end of a link.
type text struct {
	X, Y float64
	Text string
}

// The measures of labels. Which font a reader has is not known, so a letter is as wide as a
// wide one.
const (
	letterWidth = 6.4
	labelHeight = 13
)

// rectangle is where something is.
type rectangle struct{ left, top, right, bottom float64 }

func (r rectangle) overlaps(s rectangle) bool {
	return r.left < s.right && s.left < r.right && r.top < s.bottom && s.top < r.bottom
}

// space finds what is in the way, by cells of the drawing.
type space map[[2]int][]rectangle

const cell = 128

func (s space) cells(r rectangle, visit func([2]int)) {
	for x := int(math.Floor(r.left / cell)); x <= int(math.Floor(r.right/cell)); x++ {
		for y := int(math.Floor(r.top / cell)); y <= int(math.Floor(r.bottom/cell)); y++ {
			visit([2]int{x, y})
		}
	}
}

func (s space) add(r rectangle) {
	s.cells(r, func(at [2]int) { s[at] = append(s[at], r) })
}

func (s space) free(r rectangle) bool {
	free := true
	s.cells(r, func(at [2]int) {
		for _, other := range s[at] {
			free = free && !r.overlaps(other)
		}
	})
	return free
}

// label puts a label at each end of each link, as near to the box as there is room. One that has
// no room is left out; the link's title has it.
func (p *picture) label() {
	taken := space{}
	for _, b := range p.Boxes {
		taken.add(rectangle{b.X, b.Y, b.X + boxWidth, b.Y + boxHeight})
	}
	for i := range p.Curves {
		c := &p.Curves[i]
		q := c.points
		p.put(taken, c, c.FromIf, q[0], q[1], q[2])
		p.put(taken, c, c.ToIf, q[2], q[1], q[0])
	}
}

// put puts one label along a curve that begins at the label's box.
func (p *picture) put(taken space, c *curve, name string, from, control, to [2]float64) {
	if name == "" {
		return
	}
	half := float64(len([]rune(name)))*letterWidth/2 + 1
	length := math.Hypot(control[0]-from[0], control[1]-from[1]) + math.Hypot(to[0]-control[0], to[1]-control[1])
	for distance := 14.0; distance < length/2; distance += 7 {
		x, y := along(from[0], from[1], control[0], control[1], to[0], to[1], distance)
		r := rectangle{x - half, y - labelHeight/2, x + half, y + labelHeight/2}
		if r.left < 0 || r.right > p.Width || r.top < 0 || r.bottom > p.Height || !taken.free(r) {
			continue
		}
		taken.add(r)
		c.Labels = append(c.Labels, text{math.Round(x*10) / 10, math.Round(y*10) / 10, name})
		return
	}
}
