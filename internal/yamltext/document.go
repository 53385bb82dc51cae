// Package yamltext edits the text of YAML files and leaves all that is not edited as it is,
// comments and order included.
package yamltext

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is the text of a YAML file with its tree. Edits replace parts of the text, so
// that all else, comments and order included, stays as it is.
type Document struct {
	// Text is the file without edits.
	Text string
	// Root is nil for an empty file.
	Root  *yaml.Node
	lines []int // where each line starts
	// ends are where what follows an entry of a block mapping begins, by its key.
	ends  map[*yaml.Node]int
	edits []edit
}

// edit replaces text[from:to].
type edit struct {
	from, to int
	with     string
}

// Parse reads a file.
func Parse(text string) (*Document, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	d := &Document{Text: text, lines: []int{0}, ends: map[*yaml.Node]int{}}
	for i := range len(text) {
		if text[i] == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	if len(doc.Content) > 0 {
		d.Root = doc.Content[0]
		d.index(d.Root, len(text))
	}
	return d, nil
}

// index fills in ends below a node that ends before end.
func (d *Document) index(n *yaml.Node, end int) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			next := end
			if i+2 < len(n.Content) {
				next = d.Offset(n.Content[i+2])
			}
			d.ends[n.Content[i]] = next
			d.index(n.Content[i+1], next)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			next := end
			if i+1 < len(n.Content) {
				next = d.lineStart(d.Offset(n.Content[i+1]))
			}
			d.index(item, next)
		}
	}
}

// Offset is where a node begins. Columns count characters.
func (d *Document) Offset(n *yaml.Node) int {
	at := d.lines[n.Line-1]
	column := 1
	for i := range d.Text[at:] {
		if column == n.Column {
			return at + i
		}
		column++
	}
	return len(d.Text)
}

func (d *Document) lineStart(at int) int {
	return strings.LastIndexByte(d.Text[:at], '\n') + 1
}

// Lead is what stands before at on its line.
func (d *Document) Lead(at int) string { return d.Text[d.lineStart(at):at] }

// Indent is spaces up to the column of at.
func (d *Document) Indent(at int) string {
	return strings.Repeat(" ", len([]rune(d.Lead(at))))
}

// Replace replaces Text[from:to].
func (d *Document) Replace(from, to int, with string) {
	d.edits = append(d.edits, edit{from, to, with})
}

// Apply returns the text with all edits. Edits within a part that another one removes
// are dropped.
func (d *Document) Apply() string {
	slices.SortStableFunc(d.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	var out strings.Builder
	at := 0
	for _, e := range d.edits {
		if e.from < at {
			continue
		}
		out.WriteString(d.Text[at:e.from])
		out.WriteString(e.with)
		at = e.to
	}
	out.WriteString(d.Text[at:])
	return out.String()
}

// Flow reports whether a mapping is written in braces.
func Flow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// Entry is one key of a mapping: the i-th, as written.
type Entry struct {
	In         *yaml.Node
	at         int // of the key in In.Content
	Key, Value *yaml.Node
}

// Entries returns the entries of a mapping, nil for anything else.
func Entries(m *yaml.Node) []Entry {
	var out []Entry
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		out = append(out, Entry{m, i, m.Content[i], m.Content[i+1]})
	}
	return out
}

// Find is the entry of a key that is written in a mapping itself.
func Find(m *yaml.Node, key string) (Entry, bool) {
	for _, e := range Entries(m) {
		if e.Key.Value == key && e.Key.Kind == yaml.ScalarNode {
			return e, true
		}
	}
	return Entry{}, false
}

// Deref follows an alias.
func Deref(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// Extent is the part of the text that an entry takes, without the line break before it:
// whole lines of a block mapping after the key's indentation, or up to the next key or
// the brace in a flow mapping.
func (d *Document) Extent(e Entry) (from, to int) {
	from = d.Offset(e.Key)
	if Flow(e.In) {
		if e.at+2 < len(e.In.Content) {
			return from, d.Offset(e.In.Content[e.at+2])
		}
		return from, d.closing(from)
	}
	to = d.ends[e.Key]
	if to < len(d.Text) {
		to = d.lineStart(to)
	}
	// Comments and blank lines at the end belong to what follows.
	column := len(d.Lead(from))
	for to > from {
		start := d.lineStart(to - 1)
		line := strings.TrimRight(d.Text[start:to], "\r\n")
		trimmed := strings.TrimLeft(line, " ")
		if start <= from || trimmed != "" && (trimmed[0] != '#' || len(line)-len(trimmed) > column) {
			break
		}
		to = start
	}
	return from, to
}

// closing is where the flow collection that is open at from ends: its bracket.
func (d *Document) closing(from int) int {
	depth := 0
	var quote byte
	for i := from; i < len(d.Text); i++ {
		c := d.Text[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && (i == 0 || strings.IndexByte(" \t\n\r,:[{", d.Text[i-1]) >= 0):
			quote = c
		case c == '#' && i > 0 && strings.IndexByte(" \t\n", d.Text[i-1]) >= 0:
			if end := strings.IndexByte(d.Text[i:], '\n'); end >= 0 {
				i += end
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return len(d.Text)
}

// Written is a value as the text has it, on one line where it is in braces or brackets;
// false for a value that only fits where it is, over several lines.
func (d *Document) Written(e Entry) (string, bool) {
	v := Deref(e.Value)
	if v.Kind == yaml.ScalarNode && v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return "", false
	}
	return inFlow(v, maxDepth)
}

// maxDepth is how deep a value may be nested that is written in flow style. An alias may
// refer to a list that it is in.
const maxDepth = 8

// inFlow writes a value in flow style.
func inFlow(n *yaml.Node, depth int) (string, bool) {
	if depth == 0 {
		return "", false
	}
	c := *Deref(n)
	c.HeadComment, c.LineComment, c.FootComment, c.Anchor = "", "", "", ""
	switch c.Kind {
	case yaml.ScalarNode:
		out, err := yaml.Marshal(&c)
		text := strings.TrimSuffix(string(out), "\n")
		return text, err == nil && !strings.Contains(text, "\n")
	case yaml.SequenceNode:
		var parts []string
		for _, item := range c.Content {
			text, ok := inFlow(item, depth-1)
			if !ok {
				return "", false
			}
			if s := Deref(item); s.Kind == yaml.ScalarNode && s.Style == 0 && strings.ContainsAny(text, ",[]{}") {
				text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
			}
			parts = append(parts, text)
		}
		return "[" + strings.Join(parts, ", ") + "]", true
	}
	return "", false
}

// Insert puts "key: value" before an entry, with the comment that from has on its line.
func (d *Document) Insert(before Entry, key, value string, from *yaml.Node) {
	text := d.KeyLike(before.Key, key) + ": " + value
	if from != nil && from.LineComment != "" && !Flow(before.In) {
		text += " " + from.LineComment
	}
	at := d.Offset(before.Key)
	switch {
	case Flow(before.In):
		d.Replace(at, at, text+", ")
	case strings.TrimSpace(d.Lead(at)) == "":
		start := d.lineStart(at)
		d.Replace(start, start, d.Lead(at)+text+"\n")
	default: // the first key of an entry of a list
		d.Replace(at, at, text+"\n"+d.Indent(at))
	}
}

// KeyLike is a key in double quotes if another one is, as in JSON.
func (d *Document) KeyLike(other *yaml.Node, key string) string {
	if other.Style&yaml.DoubleQuotedStyle != 0 {
		return strconv.Quote(key)
	}
	return key
}

// inserted is the last insertion at a place, nil for none.
func (d *Document) inserted(at int) *edit {
	for i := range slices.Backward(d.edits) {
		if e := &d.edits[i]; e.from == at && e.to == at {
			return e
		}
	}
	return nil
}

// Remove takes entries out of one mapping. It reports false, and does nothing, if that
// would leave none: the caller removes the mapping then.
func (d *Document) Remove(gone []Entry) bool {
	if len(gone) == 0 {
		return true
	}
	m := gone[0].In
	all := Entries(m)
	goes := map[*yaml.Node]bool{}
	for _, e := range gone {
		goes[e.Key] = true
	}
	if len(goes) == len(all) {
		return false
	}
	stays := func(e Entry) bool { return !goes[e.Key] }
	for i := 0; i < len(all); i++ {
		e := all[i]
		if stays(e) {
			continue
		}
		from, to := d.Extent(e)
		next := slices.IndexFunc(all[i:], stays)
		switch {
		case !Flow(m) && strings.TrimSpace(d.Lead(from)) == "":
			d.Replace(d.lineStart(from), to, "")
		case !Flow(m): // the first key of an entry of a list
			i += next
			d.Replace(from, d.Offset(all[i].Key), "")
		case next < 0 && d.inserted(from) != nil: // what is inserted is the last one
			put := d.inserted(from)
			put.with = strings.TrimSuffix(put.with, ", ")
			d.Replace(from, from+len(strings.TrimRight(d.Text[from:to], ", \t\r\n")), "")
		case next < 0: // with the comma before it
			comma := strings.LastIndexByte(d.Text[:from], ',')
			d.Replace(comma, from+len(strings.TrimRight(d.Text[from:to], ", \t\r\n")), "")
		default:
			d.Replace(from, to, "")
		}
	}
	return true
}

// Drop removes an entry, and writes {} where its mapping would have none left.
func (d *Document) Drop(e Entry) {
	if d.Remove([]Entry{e}) {
		return
	}
	from, to := d.Extent(e)
	start := from
	if strings.TrimSpace(d.Lead(from)) == "" && !Flow(e.In) {
		start = d.lineStart(from)
	}
	put := d.inserted(start)
	switch {
	case Flow(e.In) && put != nil:
		put.with = strings.TrimSuffix(put.with, ", ")
		d.Replace(from, to, "")
	case Flow(e.In):
		d.Replace(from, to, "")
	case put != nil:
		d.Replace(start, to, "")
	case strings.HasSuffix(d.Text[from:to], "\n"):
		d.Replace(from, to, "{}\n")
	default:
		d.Replace(from, to, "{}")
	}
}

// Empty takes away an entry though its mapping may have none left.
func (d *Document) Empty(e Entry) {
	from, to := d.Extent(e)
	if !Flow(e.In) {
		from = d.lineStart(from)
	}
	d.Replace(from, to, "")
}

// Rename gives an entry another key.
func (d *Document) Rename(e Entry, key string) {
	from := d.Offset(e.Key)
	if n := len(e.Key.Value); e.Key.Style == 0 && d.Text[from:min(from+n, len(d.Text))] == e.Key.Value {
		d.Replace(from, from+n, key)
	}
}

// Hoist puts entries of a block mapping, which may lie deeper than an entry, in place of
// it: each with a new key. What else is in the entry goes, but its comments stay.
func (d *Document) Hoist(old Entry, inner []Entry, keys []string) {
	from, to := d.Extent(old)
	indent := d.Indent(from)
	var out strings.Builder
	at := from
	comments := func(until int) {
		for line := range strings.Lines(d.Text[at:max(at, until)]) {
			if i := strings.Index(line, "#"); i >= 0 && (i == 0 || line[i-1] == ' ') && !strings.ContainsAny(line[:i], "\"'") {
				out.WriteString(strings.TrimRight(line[i:], "\r\n") + "\n" + indent)
			}
		}
	}
	for i, e := range inner {
		start, end := d.Extent(e)
		comments(start)
		at = end
		depth := len(d.Lead(start)) - len(d.Lead(from))
		text := keys[i] + d.Text[start+len(d.Raw(e.Key)):end]
		for j, line := range slices.Collect(strings.Lines(text)) {
			if j > 0 {
				line = strings.TrimPrefix(line, strings.Repeat(" ", min(depth, len(line)-len(strings.TrimLeft(line, " ")))))
			}
			out.WriteString(line)
		}
		if !strings.HasSuffix(text, "\n") && i+1 < len(inner) {
			out.WriteString("\n")
		}
		out.WriteString(indent)
	}
	comments(to)
	d.Replace(from, to, strings.TrimSuffix(out.String(), indent))
}

// Raw is a key as the text has it.
func (d *Document) Raw(key *yaml.Node) string {
	from := d.Offset(key)
	n := len(key.Value)
	if key.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		n += 2
	}
	return d.Text[from:min(from+n, len(d.Text))]
}
