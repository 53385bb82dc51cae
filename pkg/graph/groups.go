package graph

import (
	"slices"

	"github.com/c9s-lab/c9s/internal/natural"
)

// Group is a set of nodes that a page can fold to one box.
type Group struct {
	Name string `json:"name"`
	// Band is the row of the folded box, from the top.
	Band int `json:"band"`
	// Nodes are indexes of the graph's nodes, sorted by name.
	Nodes []int `json:"nodes"`
}

// The most bands of a drawing, and the most groups of a band.
const (
	maxBands = 10
	maxNames = 8
)

// group groups the nodes by their level and name. A lab of many small levels, as a long chain
// of nodes, has several levels in a band.
func (g *Graph) group() {
	bands := g.bands()
	for band, nodes := range bands {
		var names []string
		by := map[string][]int{}
		for _, i := range nodes {
			name := stem(g.Nodes[i].Name)
			if by[name] == nil {
				names = append(names, name)
			}
			by[name] = append(by[name], i)
		}
		if len(names) > maxNames {
			names, by = []string{""}, map[string][]int{"": nodes}
		}
		for _, name := range names {
			slices.SortStableFunc(by[name], func(a, b int) int { return natural.Compare(g.Nodes[a].Name, g.Nodes[b].Name) })
			g.Groups = append(g.Groups, Group{Name: g.title(name, by[name]), Band: band, Nodes: by[name]})
		}
	}
}

// bands are the nodes of the levels, or of several levels each.
func (g *Graph) bands() [][]int {
	var levels [][]int
	last := unknown - 1
	for _, row := range g.Levels {
		if level := g.Nodes[row[0]].level; level != last {
			levels = append(levels, nil)
			last = level
		}
		levels[len(levels)-1] = append(levels[len(levels)-1], row...)
	}
	if len(levels) <= maxBands {
		return levels
	}
	bands := make([][]int, maxBands)
	placed := 0
	for _, nodes := range levels { // as many nodes in each as can be
		band := min(placed*maxBands/len(g.Nodes), maxBands-1)
		bands[band] = append(bands[band], nodes...)
		placed += len(nodes)
	}
	return slices.DeleteFunc(bands, func(b []int) bool { return len(b) == 0 })
}

// title names a group of sorted nodes: by what they have in common, or by the first and the last of them.
func (g *Graph) title(stem string, nodes []int) string {
	if len(nodes) == 1 {
		return g.Nodes[nodes[0]].Name
	}
	first, last := g.Nodes[nodes[0]].Name, g.Nodes[nodes[len(nodes)-1]].Name
	if stem == "" {
		return first + " … " + last
	}
	for _, other := range g.Groups {
		if other.Name == stem {
			return first + " … " + last
		}
	}
	return stem
}
