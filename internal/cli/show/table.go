package show

import (
	"fmt"
	"io"
	"strings"
)

// Columns aligns cells that tabs separate, as text/tabwriter and kubectl's printer do.
type Columns interface {
	io.Writer
	Flush() error
}

// Table writes rows of cells. What is in a cell stays in it.
type Table struct{ columns Columns }

// NewTable returns a table onto columns.
func NewTable(columns Columns) *Table { return &Table{columns} }

// Row adds a row.
func (t *Table) Row(cells ...string) {
	safe := make([]string, len(cells))
	for i, c := range cells {
		safe[i] = Cell(c)
	}
	fmt.Fprintln(t.columns, strings.Join(safe, "\t"))
}

// Flush writes the rows.
func (t *Table) Flush() error { return t.columns.Flush() }
