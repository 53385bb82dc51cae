package convert

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is the text of a YAML file with its tree. Edits replace parts of the text, so
// that all else, comments and order included, stays as it is.
type document struct {
	text  string
	lines []int // where each line starts
	root  *yaml.Node
	// ends are where what follows an entry of a block mapping begins, by its key.
	ends  map[*yaml.Node]int
	edits []edit
}

// edit replaces text[from:to].
type edit struct {
	from, to int
	with     string
}

func parse(text string) (*document, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	d := &document{text: text, lines: []int{0}, ends: map[*yaml.Node]int{}}
	for i := range len(text) {
		if text[i] == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	if len(doc.Content) > 0 {
		d.root = doc.Content[0]
		d.index(d.root, len(text))
	}
	return d, nil
}

// index fills in ends below a node that ends before end.
func (d *document) index(n *yaml.Node, end int) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			next := end
			if i+2 < len(n.Content) {
				next = d.offset(n.Content[i+2])
			}
			d.ends[n.Content[i]] = next
			d.index(n.Content[i+1], next)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			next := end
			if i+1 < len(n.Content) {
				next = d.lineStart(d.offset(n.Content[i+1]))
			}
			d.index(item, next)
		}
	}
}

// offset is where a node begins. Columns count characters.
func (d *document) offset(n *yaml.Node) int {
	at := d.lines[n.Line-1]
	column := 1
	for i := range d.text[at:] {
		if column == n.Column {
			return at + i
		}
		column++
	}
	return len(d.text)
}

func (d *document) lineStart(at int) int {
	return strings.LastIndexByte(d.text[:at], '\n') + 1
}

// lead is what stands before at on its line.
func (d *document) lead(at int) string { return d.text[d.lineStart(at):at] }

// indent is spaces up to the column of at.
func (d *document) indent(at int) string {
	return strings.Repeat(" ", len([]rune(d.lead(at))))
}

func (d *document) replace(from, to int, with string) {
	d.edits = append(d.edits, edit{from, to, with})
}

// apply returns the text with all edits. Edits within a part that another one removes
// are dropped.
func (d *document) apply() string {
	slices.SortStableFunc(d.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	var out strings.Builder
	at := 0
	for _, e := range d.edits {
		if e.from < at {
			continue
		}
		out.WriteString(d.text[at:e.from])
		out.WriteString(e.with)
		at = e.to
	}
	out.WriteString(d.text[at:])
	return out.String()
}

// flow reports whether a mapping is written in braces.
func flow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// entry is one key of a mapping: the i-th, as written.
type entry struct {
	in         *yaml.Node
	at         int // of the key in in.Content
	key, value *yaml.Node
}

func entries(m *yaml.Node) []entry {
	var out []entry
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		out = append(out, entry{m, i, m.Content[i], m.Content[i+1]})
	}
	return out
}

// find is the entry of a key that is written in a mapping itself.
func find(m *yaml.Node, key string) (entry, bool) {
	for _, e := range entries(m) {
		if e.key.Value == key && e.key.Kind == yaml.ScalarNode {
			return e, true
		}
	}
	return entry{}, false
}

// deref follows an alias.
func deref(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// extent is the part of the text that an entry takes, without the line break before it:
// whole lines of a block mapping after the key's indentation, or up to the next key or
// the brace in a flow mapping.
func (d *document) extent(e entry) (from, to int) {
	from = d.offset(e.key)
	if flow(e.in) {
		if e.at+2 < len(e.in.Content) {
			return from, d.offset(e.in.Content[e.at+2])
		}
		return from, d.closing(from)
	}
	to = d.ends[e.key]
	if to < len(d.text) {
		to = d.lineStart(to)
	}
	// Comments and blank lines at the end belong to what follows.
	column := len(d.lead(from))
	for to > from {
		start := d.lineStart(to - 1)
		line := strings.TrimRight(d.text[start:to], "\r\n")
		trimmed := strings.TrimLeft(line, " ")
		if start <= from || trimmed != "" && (trimmed[0] != '#' || len(line)-len(trimmed) > column) {
			break
		}
		to = start
	}
	return from, to
}

// closing is where the flow collection that is open at from ends: its bracket.
func (d *document) closing(from int) int {
	depth := 0
	var quote byte
	for i := from; i < len(d.text); i++ {
		c := d.text[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && (i == 0 || strings.IndexByte(" \t\n\r,:[{", d.text[i-1]) >= 0):
			quote = c
		case c == '#' && i > 0 && strings.IndexByte(" \t\n", d.text[i-1]) >= 0:
			if end := strings.IndexByte(d.text[i:], '\n'); end >= 0 {
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
	return len(d.text)
}

// written is a value as the text has it, on one line where it is in braces or brackets;
// false for a value that only fits where it is, over several lines.
func (d *document) written(e entry) (string, bool) {
	v := deref(e.value)
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
	c := *deref(n)
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
			if s := deref(item); s.Kind == yaml.ScalarNode && s.Style == 0 && strings.ContainsAny(text, ",[]{}") {
				text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
			}
			parts = append(parts, text)
		}
		return "[" + strings.Join(parts, ", ") + "]", true
	}
	return "", false
}

// insert puts "key: value" before an entry, with the comment that from has on its line.
func (d *document) insert(before entry, key, value string, from *yaml.Node) {
	text := d.keyLike(before.key, key) + ": " + value
	if from != nil && from.LineComment != "" && !flow(before.in) {
		text += " " + from.LineComment
	}
	at := d.offset(before.key)
	switch {
	case flow(before.in):
		d.replace(at, at, text+", ")
	case strings.TrimSpace(d.lead(at)) == "":
		start := d.lineStart(at)
		d.replace(start, start, d.lead(at)+text+"\n")
	default: // the first key of an entry of a list
		d.replace(at, at, text+"\n"+d.indent(at))
	}
}

// keyLike is a key in double quotes if another one is, as in JSON.
func (d *document) keyLike(other *yaml.Node, key string) string {
	if other.Style&yaml.DoubleQuotedStyle != 0 {
		return strconv.Quote(key)
	}
	return key
}

// inserted is the last insertion at a place, nil for none.
func (d *document) inserted(at int) *edit {
	for i := range slices.Backward(d.edits) {
		if e := &d.edits[i]; e.from == at && e.to == at {
			return e
		}
	}
	return nil
}

// remove takes entries out of one mapping. It reports false, and does nothing, if that
// would leave none: the caller removes the mapping then.
func (d *document) remove(gone []entry) bool {
	if len(gone) == 0 {
		return true
	}
	m := gone[0].in
	all := entries(m)
	goes := map[*yaml.Node]bool{}
	for _, e := range gone {
		goes[e.key] = true
	}
	if len(goes) == len(all) {
		return false
	}
	stays := func(e entry) bool { return !goes[e.key] }
	for i := 0; i < len(all); i++ {
		e := all[i]
		if stays(e) {
			continue
		}
		from, to := d.extent(e)
		next := slices.IndexFunc(all[i:], stays)
		switch {
		case !flow(m) && strings.TrimSpace(d.lead(from)) == "":
			d.replace(d.lineStart(from), to, "")
		case !flow(m): // the first key of an entry of a list
			i += next
			d.replace(from, d.offset(all[i].key), "")
		case next < 0 && d.inserted(from) != nil: // what is inserted is the last one
			put := d.inserted(from)
			put.with = strings.TrimSuffix(put.with, ", ")
			d.replace(from, from+len(strings.TrimRight(d.text[from:to], ", \t\r\n")), "")
		case next < 0: // with the comma before it
			comma := strings.LastIndexByte(d.text[:from], ',')
			d.replace(comma, from+len(strings.TrimRight(d.text[from:to], ", \t\r\n")), "")
		default:
			d.replace(from, to, "")
		}
	}
	return true
}

// drop removes an entry, and writes {} where its mapping would have none left.
func (d *document) drop(e entry) {
	if d.remove([]entry{e}) {
		return
	}
	from, to := d.extent(e)
	start := from
	if strings.TrimSpace(d.lead(from)) == "" && !flow(e.in) {
		start = d.lineStart(from)
	}
	put := d.inserted(start)
	switch {
	case flow(e.in) && put != nil:
		put.with = strings.TrimSuffix(put.with, ", ")
		d.replace(from, to, "")
	case flow(e.in):
		d.replace(from, to, "")
	case put != nil:
		d.replace(start, to, "")
	case strings.HasSuffix(d.text[from:to], "\n"):
		d.replace(from, to, "{}\n")
	default:
		d.replace(from, to, "{}")
	}
}

// empty takes away an entry though its mapping may have none left.
func (d *document) empty(e entry) {
	from, to := d.extent(e)
	if !flow(e.in) {
		from = d.lineStart(from)
	}
	d.replace(from, to, "")
}

// rename gives an entry another key.
func (d *document) rename(e entry, key string) {
	from := d.offset(e.key)
	if n := len(e.key.Value); e.key.Style == 0 && d.text[from:min(from+n, len(d.text))] == e.key.Value {
		d.replace(from, from+n, key)
	}
}

// hoist puts entries of a block mapping, which may lie deeper than an entry, in place of
// it: each with a new key. What else is in the entry goes, but its comments stay.
func (d *document) hoist(old entry, inner []entry, keys []string) {
	from, to := d.extent(old)
	indent := d.indent(from)
	var out strings.Builder
	at := from
	comments := func(until int) {
		for line := range strings.Lines(d.text[at:max(at, until)]) {
			if i := strings.Index(line, "#"); i >= 0 && (i == 0 || line[i-1] == ' ') && !strings.ContainsAny(line[:i], "\"'") {
				out.WriteString(strings.TrimRight(line[i:], "\r\n") + "\n" + indent)
			}
		}
	}
	for i, e := range inner {
		start, end := d.extent(e)
		comments(start)
		at = end
		depth := len(d.lead(start)) - len(d.lead(from))
		text := keys[i] + d.text[start+len(d.raw(e.key)):end]
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
	d.replace(from, to, strings.TrimSuffix(out.String(), indent))
}

// raw is a key as the text has it.
func (d *document) raw(key *yaml.Node) string {
	from := d.offset(key)
	n := len(key.Value)
	if key.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		n += 2
	}
	return d.text[from:min(from+n, len(d.text))]
}
