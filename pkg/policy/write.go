package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/yamltext"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// End is the end of a link whose impairment is declared: a node and an interface, by its Linux
// name and, where that differs, as the kind spells it.
type End struct{ Node, Interface, Alias string }

// written is the interface as a rule names it.
func (e End) written() string { return cmp.Or(e.Alias, e.Interface) }

func (e End) is(pattern string) bool {
	return pattern == e.Interface || pattern == e.Alias && pattern != ""
}

func (e End) matched(pattern string) bool {
	return pattern == "" || glob(pattern, e.Interface) || e.Alias != "" && glob(pattern, e.Alias)
}

// Declare returns the text of a policy file that declares the impairment of what an end sends,
// nil for none. The rest of the text, comments and layout included, stays as it is. A rule for
// exactly this interface of exactly this node is edited if no other rule comes before it;
// otherwise a profile that comes before all others gets a rule. An empty text becomes a file.
func Declare(file, text string, e End, to *lab.Impairment) (string, error) {
	if strings.TrimSpace(text) == "" {
		text += "apiVersion: " + APIVersion + "\nkind: " + Kind + "\nprofiles:\n"
		if !to.Any() {
			return text + "  []\n", nil
		}
	} else if err := check(file, text); err != nil {
		return "", err
	}
	d, err := yamltext.Parse(text)
	if err != nil {
		return "", err
	}
	w := &writer{Document: d, end: e, to: to}
	w.read()
	if err := w.declare(); err != nil {
		return "", err
	}
	out := w.Apply()
	if err := check(file, out); err != nil {
		return "", fmt.Errorf("%s is written in a way that c9s cannot edit: write the rule yourself, such as %s (%w)", file, w.rule(), err)
	}
	return out, nil
}

func check(file, text string) error {
	_, diags := Load(file, []byte(text))
	for _, d := range diags {
		if d.Severity == diag.Error {
			return errors.New(d.String())
		}
	}
	return nil
}

// writer edits one policy file.
type writer struct {
	*yamltext.Document
	end      End
	to       *lab.Impairment
	list     yamltext.Entry // profiles
	profiles []writtenProfile
}

// writtenProfile is a profile with its place in the file.
type writtenProfile struct {
	Profile
	node  *yaml.Node
	rules []*yaml.Node
}

func (w *writer) read() {
	w.list, _ = yamltext.Find(w.Root, "profiles")
	list := yamltext.Deref(w.list.Value)
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	for _, item := range list.Content {
		p := writtenProfile{node: yamltext.Deref(item)}
		if err := readAs(p.node, &p.Profile); err != nil {
			continue // it was checked: it is of a form that only the loader reads
		}
		if links, ok := yamltext.Find(p.node, "links"); ok {
			p.rules = yamltext.Deref(links.Value).Content
		}
		w.profiles = append(w.profiles, p)
	}
	slices.SortStableFunc(w.profiles, func(a, b writtenProfile) int {
		return cmp.Or(cmp.Compare(a.priority(), b.priority()), strings.Compare(a.Name, b.Name))
	})
}

// readAs reads the parts of a profile that decide whom its rules are for.
func readAs(n *yaml.Node, p *Profile) error {
	var v struct {
		Name     string
		Priority *int
		Deny     bool
		Match    *struct {
			Names, Kinds, Groups []string
			Labels               map[string]any
			Expression           string
		}
		Links []struct {
			Interface, Peer string
			Impair          map[string]any
		}
	}
	if err := n.Decode(&v); err != nil {
		return err
	}
	*p = Profile{Name: v.Name, Priority: v.Priority, Deny: v.Deny}
	if m := v.Match; m != nil {
		p.Match = &Match{Names: m.Names, Kinds: m.Kinds, Groups: m.Groups, Expression: m.Expression}
		if len(m.Labels) > 0 {
			p.Match.Labels = map[string]string{"": ""} // some
		}
	}
	for _, l := range v.Links {
		rule := LinkRule{Interface: l.Interface, Peer: l.Peer}
		if l.Impair != nil {
			rule.Impair = &Impair{}
		}
		p.Links = append(p.Links, rule)
	}
	return nil
}

func (p *writtenProfile) priority() int {
	if p.Priority == nil {
		return DefaultPriority
	}
	return *p.Priority
}

// mayMatch reports whether the profile may be for a node. Only names are judged.
func (p *writtenProfile) mayMatch(node string) bool {
	return p.Match == nil || len(p.Match.Names) == 0 || slices.ContainsFunc(p.Match.Names, func(pattern string) bool { return glob(pattern, node) })
}

// only reports whether the profile is for exactly one node.
func (p *writtenProfile) only(node string) bool {
	m := p.Match
	return m != nil && len(m.Names) == 1 && m.Names[0] == node && len(m.Kinds)+len(m.Groups)+len(m.Labels) == 0 && m.Expression == ""
}

// declare finds the place of the rule and makes the edits.
func (w *writer) declare() error {
	for _, p := range w.profiles {
		if !p.mayMatch(w.end.Node) {
			continue
		}
		own := p.only(w.end.Node)
		for i, rule := range p.Links {
			switch {
			case i >= len(p.rules):
			case own && rule.Peer == "" && w.end.is(rule.Interface):
				return w.edit(p, yamltext.Deref(p.rules[i]))
			case rule.Impair != nil && w.end.matched(rule.Interface):
				return w.first(p.Name)
			}
		}
		if p.Deny {
			return w.first(p.Name)
		}
	}
	return w.first("")
}

// first gives a profile that comes before all others a rule. by is the profile that would
// otherwise decide, "" for none.
func (w *writer) first(by string) error {
	switch {
	case !w.to.Any() && by != "":
		return fmt.Errorf("profile %q may impair %s:%s too: remove that from the file yourself", by, w.end.Node, w.end.Interface)
	case !w.to.Any():
		return nil
	}
	i := slices.IndexFunc(w.profiles, func(p writtenProfile) bool { return p.mayMatch(w.end.Node) })
	if i >= 0 && w.profiles[i].only(w.end.Node) && w.profiles[i].Name == w.name() {
		return w.append(w.profiles[i])
	}
	return w.add()
}

// name is that of the profile that is added for a node.
func (w *writer) name() string { return w.end.Node + "-links" }

// add adds a profile for the node.
func (w *writer) add() error {
	name, priority := w.name(), DefaultPriority
	for _, p := range w.profiles {
		if p.mayMatch(w.end.Node) {
			priority = min(priority, p.priority()-1)
		}
		if p.Name == name {
			return fmt.Errorf("profile %q exists and does not come first: add the rule %s to a profile yourself", name, w.rule())
		}
	}
	lines := []string{"name: " + scalar(name)}
	if priority != DefaultPriority {
		lines = append(lines, "priority: "+strconv.Itoa(priority))
	}
	lines = append(lines, "match: {names: ["+scalar(w.end.Node)+"]}", "links:", "  - "+w.rule())
	if w.list.Key == nil {
		w.Replace(len(w.Text), len(w.Text), w.lineBreak()+"profiles:\n  - "+strings.Join(lines, "\n    ")+"\n")
		return nil
	}
	return w.item(w.list, lines)
}

// append adds a rule to a profile's links.
func (w *writer) append(p writtenProfile) error {
	links, ok := yamltext.Find(p.node, "links")
	if !ok {
		return fmt.Errorf("profile %q has no links: add the rule %s yourself", p.Name, w.rule())
	}
	return w.item(links, []string{w.rule()})
}

// item appends an item to a list: lines of its text.
func (w *writer) item(list yamltext.Entry, lines []string) error {
	v := list.Value
	switch {
	case v.Kind == yaml.SequenceNode && v.Style&yaml.FlowStyle != 0 && len(v.Content) == 0, yamltext.Flow(list.In), v.Kind == yaml.AliasNode:
		if v.Kind == yaml.AliasNode || yamltext.Flow(list.In) {
			return fmt.Errorf("the list %s is in braces or has an alias: add the rule %s yourself", list.Key.Value, w.rule())
		}
		// An empty list, as []: it becomes a block.
		from := w.Offset(v)
		end := from + strings.IndexByte(w.Text[from:], ']') + 1
		w.Replace(from, end, "\n"+indented(w.Indent(w.Offset(list.Key))+"  ", lines))
		return nil
	case v.Kind == yaml.SequenceNode && v.Style&yaml.FlowStyle != 0:
		return fmt.Errorf("the list %s is in brackets: add the rule %s yourself", list.Key.Value, w.rule())
	}
	_, end := w.Extent(list)
	indent := w.Indent(w.Offset(list.Key)) + "  "
	if v.Kind == yaml.SequenceNode {
		indent = w.Indent(w.Offset(v))
	}
	text := indented(indent, lines) + "\n"
	if end > 0 && w.Text[end-1] != '\n' {
		text = "\n" + text
	}
	w.Replace(end, end, text)
	return nil
}

func indented(indent string, lines []string) string {
	return indent + "- " + strings.Join(lines, "\n"+indent+"  ")
}

func (w *writer) lineBreak() string {
	if w.Text == "" || strings.HasSuffix(w.Text, "\n") {
		return ""
	}
	return "\n"
}

// edit changes the impairment of a rule, key by key, so that its comments stay.
func (w *writer) edit(p writtenProfile, rule *yaml.Node) error {
	impair, ok := yamltext.Find(rule, "impair")
	figures := figuresOf(w.to)
	m := yamltext.Deref(impair.Value)
	if !ok || m.Kind != yaml.MappingNode || len(m.Content) == 0 {
		return w.replaceImpair(rule, impair, ok)
	}
	if impair.Value.Kind == yaml.AliasNode {
		return fmt.Errorf("the impairment of %s in profile %q is an alias: write it yourself", w.end.written(), p.Name)
	}
	var gone []yamltext.Entry
	for _, e := range yamltext.Entries(m) {
		i := slices.IndexFunc(figures, func(f figure) bool { return f.key == e.Key.Value })
		switch {
		case e.Key.Value == "seed":
		case i < 0:
			gone = append(gone, e)
		case e.Value.Value != figures[i].text:
			from := w.Offset(e.Value)
			w.Replace(from, from+len(w.Raw(e.Value)), figures[i].text)
		}
	}
	if len(gone) == len(yamltext.Entries(m)) { // nothing that is there stays
		return w.replaceImpair(rule, impair, true)
	}
	anchor := yamltext.Entries(m)[0]
	for _, e := range yamltext.Entries(m) {
		if !slices.ContainsFunc(gone, func(g yamltext.Entry) bool { return g.Key == e.Key }) {
			anchor = e
			break
		}
	}
	for _, f := range figures {
		if _, there := yamltext.Find(m, f.key); !there {
			w.Insert(anchor, f.key, f.text, nil)
		}
	}
	w.Remove(gone)
	return nil
}

// replaceImpair writes the impairment of a rule as a whole. It removes that of a rule that is to
// have none.
func (w *writer) replaceImpair(rule *yaml.Node, impair yamltext.Entry, there bool) error {
	text := "{" + inBraces(figuresOf(w.to)) + "}"
	switch {
	case !there && !w.to.Any():
	case !there:
		all := yamltext.Entries(rule)
		last := all[len(all)-1]
		from, to := w.Extent(last)
		at := from + len(strings.TrimRight(w.Text[from:to], ", \t\r\n"))
		separator := ", "
		if !yamltext.Flow(rule) {
			separator = "\n" + w.Indent(from)
		}
		w.Replace(at, at, separator+"impair: "+text)
	default:
		from, to := w.Extent(impair)
		was := w.Text[from:to]
		end := was[len(strings.TrimRight(was, ", \t\r\n")):]
		w.Replace(from, to, "impair: "+text+end)
	}
	return nil
}

// figure is one key of an impairment, as a file has it.
type figure struct{ key, text string }

// figuresOf returns the keys of an impairment, without the seed.
func figuresOf(i *lab.Impairment) []figure {
	if i == nil {
		return nil
	}
	var out []figure
	add := func(key, text string, wanted bool) {
		if wanted {
			out = append(out, figure{key, text})
		}
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	duration := func(ms float64) string { return time.Duration(ms * float64(time.Millisecond)).String() }
	add("delay", duration(i.DelayMS), i.DelayMS != 0)
	add("jitter", duration(i.JitterMS), i.JitterMS != 0)
	add("loss", number(i.Loss), i.Loss != 0)
	add("corruption", number(i.Corruption), i.Corruption != 0)
	add("duplication", number(i.Duplication), i.Duplication != 0)
	add("reordering", number(i.Reordering), i.Reordering != 0)
	add("rate", rate(i.RateKbit), i.RateKbit != 0)
	add("down", "true", i.Down)
	return out
}

// rate writes kbit/s with the largest unit that has no fraction.
func rate(kbit int) string {
	switch {
	case kbit%1_000_000 == 0:
		return strconv.Itoa(kbit/1_000_000) + "gbit"
	case kbit%1000 == 0:
		return strconv.Itoa(kbit/1000) + "mbit"
	}
	return strconv.Itoa(kbit) + "kbit"
}

func inBraces(figures []figure) string {
	parts := make([]string, len(figures))
	for i, f := range figures {
		parts[i] = f.key + ": " + f.text
	}
	return strings.Join(parts, ", ")
}

// rule is the rule for the end, in braces.
func (w *writer) rule() string {
	return "{interface: " + scalar(w.end.written()) + ", impair: {" + inBraces(figuresOf(w.to)) + "}}"
}

// scalar writes a text, in quotes where YAML would read something else in braces.
func scalar(s string) string {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte("["+s+"]"), &n); err == nil && len(n.Content) == 1 && len(n.Content[0].Content) == 1 {
		if v := n.Content[0].Content[0]; v.Kind == yaml.ScalarNode && v.Tag == "!!str" && v.Value == s && v.Style == 0 && v.LineComment == "" {
			return s
		}
	}
	return strconv.Quote(s)
}
