package compile

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// keyWarned are the codes and places of the diagnostics of keys. What several nodes
// inherit is reported once.
type keyWarned map[diag.Pos]bool

func (k keyWarned) first(pos diag.Pos) bool {
	told := k[pos]
	k[pos] = true
	return !told
}

// checkKeyBlocks checks the keys of kinds in all blocks, even if no node uses them.
func (c *compiler) checkKeyBlocks() {
	t := c.f.Topology
	for _, def := range t.Kinds.Items {
		c.checkKeyBlock("topology.kinds."+def.Name, def.Node, def.Name)
	}
	for _, def := range t.Groups.Items {
		c.checkKeyBlock("topology.groups."+def.Name, def.Node, "")
	}
	c.checkKeyBlock("topology.defaults", t.Defaults, "")
	for _, def := range t.Nodes.Items {
		c.checkKeyBlock("topology.nodes."+def.Name, def.Node, "")
	}
}

// checkKeyBlock checks the keys of one block, whose kind is the one given or its own.
// Without a kind, a key must be one of some kind.
func (c *compiler) checkKeyBlock(path string, d *topology.NodeDef, kind string) {
	if d == nil {
		return
	}
	if kind == "" {
		kind = d.Kind.Value
	}
	k, known := c.o.Kinds.Lookup(strings.ToLower(kind))
	for _, key := range d.Keys {
		switch {
		case len(c.o.Kinds.KindsWithKey(key.Name)) == 0:
			c.unknownKey(path, key, k)
		case kind != "" && known:
			if spec, ok := c.keyOf(k, key, path); ok {
				c.readKey(spec, key, nil)
			}
		}
	}
}

// unknownKey reports a key that is neither generic nor one of any kind.
func (c *compiler) unknownKey(path string, key topology.Key, k *kinds.Kind) {
	if !c.keys.first(key.Pos) {
		return
	}
	known := topology.GenericKeys()
	if k != nil {
		known = slices.AppendSeq(known, maps.Keys(k.Keys))
	} else {
		known = append(known, c.o.Kinds.KeyNames()...)
	}
	hint := "`c9s explain` lists all keys"
	if near := strictyaml.Nearest(key.Name, known); near != "" {
		hint = "did you mean \"" + near + "\"?"
	} else if key.Name == "links" || key.Name == "nodes" {
		hint = "move it under topology: it is topology." + key.Name
	}
	c.diags.Errorf(topology.CodeUnknownField, key.Pos, hint, "unknown key %q in %s", key.Name, path)
}

// keyOf is the declaration of a key of kind k; a kind without it is reported. who
// names the node or the block.
func (c *compiler) keyOf(k *kinds.Kind, key topology.Key, who string) (*kinds.Key, bool) {
	if spec, ok := k.Keys[key.Name]; ok {
		return &spec, true
	}
	if with := c.o.Kinds.KindsWithKey(key.Name); len(with) > 0 && c.keys.first(key.Pos) {
		c.diags.Errorf(kinds.CodeKey, key.Pos, "remove it, or set it only where nodes of kind "+strings.Join(with, " or ")+" inherit it",
			"kind %q of %s does not have the key %q", k.Name, who, key.Name)
	}
	return nil, false
}

// readKey reads the value of a key, nil for none. Files are topology.Str: the caller
// stages them.
func (c *compiler) readKey(spec *kinds.Key, key topology.Key, magic *strings.Replacer) (any, bool) {
	if key.Value.IsNull() {
		return nil, true
	}
	text := func(v topology.Value) (string, bool) {
		s, ok := v.Text()
		if ok && magic != nil {
			written := s
			if s = magic.Replace(s); s != written && c.o.For == "0.80" {
				c.lacks(v.Pos, "write the value out", "replaces no magic variables in %s (since 0.81)", key.Name)
			}
		}
		return s, ok
	}
	wrong := func(v topology.Value, want string) (any, bool) {
		if c.keys.first(v.Pos) {
			c.diags.Errorf(topology.CodeBadValue, v.Pos, "`c9s explain "+key.Name+"` shows how to write it", "%s must be %s, not %s", key.Name, want, v.Describe())
		}
		return nil, false
	}
	v := key.Value
	switch spec.Type {
	case kinds.KeyText:
		if s, ok := text(v); ok && spec.Allows(s) {
			return s, true
		}
	case kinds.KeyFile:
		if s, ok := text(v); ok {
			if lower := strings.ToLower(s); slices.Contains(spec.Values, lower) {
				return lower, true
			}
			return topology.Str{Value: s, Pos: v.Pos}, true
		}
	case kinds.KeyInteger:
		if i, ok := v.Int(); ok && (spec.Max == 0 || i >= spec.Min && i <= spec.Max) {
			return i, true
		}
	case kinds.KeyBoolean:
		if b, ok := v.Bool(); ok {
			return b, true
		}
	case kinds.KeyList, kinds.KeyFiles:
		if !v.IsList() {
			break
		}
		list, files := []string{}, []topology.Str{}
		for _, item := range v.List {
			s, ok := text(item)
			if !ok {
				return wrong(item, "a list of texts")
			}
			if spec.Type == kinds.KeyList && !spec.Allows(s) {
				return wrong(item, "a list of "+strings.TrimPrefix(spec.Wants(), "one of "))
			}
			list, files = append(list, s), append(files, topology.Str{Value: s, Pos: item.Pos})
		}
		if spec.Type == kinds.KeyFiles {
			return files, true
		}
		return list, true
	case kinds.KeyEntries:
		if v.IsList() {
			return c.readEntries(spec, key, magic)
		}
	}
	return wrong(v, spec.Wants())
}

// readEntries reads a list of mappings.
func (c *compiler) readEntries(spec *kinds.Key, key topology.Key, magic *strings.Replacer) (any, bool) {
	out, good := []map[string]any{}, true
	report := func(pos diag.Pos, format string, args ...any) {
		good = false
		if c.keys.first(pos) {
			c.diags.Errorf(topology.CodeBadValue, pos, "known keys: "+strings.Join(slices.Sorted(maps.Keys(spec.Fields)), ", "), format, args...)
		}
	}
	for _, item := range key.Value.List {
		if !item.IsMap() {
			report(item.Pos, "an entry of %s must be a mapping, not %s", key.Name, item.Describe())
			continue
		}
		entry := map[string]any{}
		for _, field := range item.Fields {
			f, ok := spec.Fields[field.Name]
			if !ok {
				report(field.Pos, "unknown key %q in %s", field.Name, key.Name)
				continue
			}
			value, ok := c.readKey(&f, field, magic)
			if good = good && ok; ok && value != nil {
				entry[field.Name] = value
			}
		}
		for _, name := range slices.Sorted(maps.Keys(spec.Fields)) {
			if _, ok := entry[name]; !ok && spec.Fields[name].Required && good {
				report(item.Pos, "an entry of %s has no %s", key.Name, name)
			}
		}
		out = append(out, entry)
	}
	return out, good
}

// compileKeys settles the keys of the node's kind: the most specific level that has
// one gives its whole value.
func (c *compiler) compileKeys(n *node) {
	if n.kind == nil {
		return
	}
	set := map[string]topology.Key{}
	for _, d := range n.res.levels {
		for _, key := range d.Keys {
			if _, ok := c.keyOf(n.kind, key, "node \""+n.Name+"\""); ok {
				if _, have := set[key.Name]; !have {
					set[key.Name] = key
				}
			}
		}
	}
	c.formerExtras(n, set)
	for _, name := range slices.Sorted(maps.Keys(n.kind.Keys)) {
		spec := n.kind.Keys[name]
		key, ok := set[name]
		c.formerEnv(n, name, &spec, ok)
		if !ok {
			c.processEnv(n, name, &spec)
			continue
		}
		value, ok := c.readKey(&spec, key, c.magic(n))
		if !ok {
			n.badInterface = true // names may depend on the key
			continue
		}
		c.setKey(n, name, &spec, c.stageKey(n, name, value))
	}
	if n.badInterface {
		return
	}
	if err := n.kind.CheckKeys(n.Node); err != nil {
		n.badInterface = true
		c.diags.Errorf(kinds.CodeKey, keyPos(n, set), "`c9s kinds "+n.kind.Name+"` lists the keys of the kind", "node %q: %v", n.Name, err)
	}
}

// keyPos is where the last of a node's keys is written, which is likely its own.
func keyPos(n *node, set map[string]topology.Key) diag.Pos {
	pos := n.Pos
	for _, key := range set {
		if key.Pos.Line > pos.Line || key.Pos.Line == pos.Line && key.Pos.Column > pos.Column {
			pos = key.Pos
		}
	}
	return pos
}

// setKey sets a key's value where the planners look for it.
func (c *compiler) setKey(n *node, name string, spec *kinds.Key, value any) {
	if spec.Env != "" {
		c.keyEnv(n, spec, value)
	}
	files, isFiles := value.([]lab.NamedFile)
	switch {
	case name == "copy-to-flash" && isFiles:
		n.Extras.CEOSCopyToFlash = files
	case name == "sfm" && value != nil:
		for i := range n.Components {
			n.Components[i].SFM = value.(string)
		}
	case spec.Env == "" && value != nil:
		if n.Keys == nil {
			n.Keys = map[string]any{}
		}
		n.Keys[name] = value
	}
}

// keyEnv puts a key's value into the variable that carries it.
func (c *compiler) keyEnv(n *node, spec *kinds.Key, value any) {
	text := ""
	switch v := value.(type) {
	case string:
		text = v
	case int:
		text = strconv.Itoa(v)
	case bool:
		text = strconv.FormatBool(v)
	}
	if spec.EnvWhen != "" {
		if text == spec.EnvWhen {
			text = "true"
		} else {
			text = ""
		}
	}
	if text == "" {
		delete(n.Env, spec.Env)
		return
	}
	if n.Env == nil {
		n.Env = map[string]string{}
	}
	n.Env[spec.Env] = text
}

// stageKey stages the files of a value.
func (c *compiler) stageKey(n *node, name string, value any) any {
	stage := func(s topology.Str) (lab.NamedFile, bool) {
		ref, ok := c.files.file(s.Value, s.Pos, name)
		return lab.NamedFile{Name: filepath.Base(s.Value), File: ref}, ok
	}
	switch v := value.(type) {
	case topology.Str:
		if f, ok := stage(v); ok {
			return f
		}
		return nil
	case []topology.Str:
		out := []lab.NamedFile{}
		for _, s := range v {
			if f, ok := stage(s); ok {
				out = append(out, f)
			}
		}
		return out
	}
	return value
}

// formerExtras warns of extras that keys have replaced, and takes their values
// where the key is not set.
func (c *compiler) formerExtras(n *node, set map[string]topology.Key) {
	e := first(&n.res, func(d *topology.NodeDef) *topology.Extras { return d.Extras })
	if e == nil {
		return
	}
	former := func(name, old string, pos diag.Pos) bool {
		_, both := set[name]
		if both {
			c.replaced("0.81", pos, "remove extras."+old, "extras.%s has no effect, since %s is set, which replaces it", old, name)
		} else {
			c.replaced("0.81", pos, "write "+name+" on the node itself", "extras.%s is the old form of %s, which containerlab 0.81 rejects", old, name)
		}
		return !both
	}
	if list := e.CEOSCopyToFlash; len(list.Items) > 0 && n.kind.Name == "arista_ceos" && !former("copy-to-flash", "ceos-copy-to-flash", list.Pos) {
		n.Extras.CEOSCopyToFlash = nil
	}
	if e.FRR != nil && e.FRR.Daemons != nil {
		if _, has := n.kind.Keys["daemons"]; has && former("daemons", "frr.daemons", e.FRR.Daemons.Pos) {
			set["daemons"] = topology.Key{Name: "daemons", Pos: e.FRR.Daemons.Pos, Value: *e.FRR.Daemons}
		}
	}
}

// formerEnv warns of an environment variable that a key has replaced.
func (c *compiler) formerEnv(n *node, name string, spec *kinds.Key, set bool) {
	if spec.Env == "" || !spec.EnvFormer {
		return
	}
	kv, ok := n.res.merged(func(d *topology.NodeDef) topology.Map { return d.Env })[spec.Env]
	if !ok {
		return
	}
	if set && c.o.For != "" {
		return // no release reads it
	}
	if set {
		c.replaced("0.80", kv.Pos, "remove it from env", "the environment variable %s has no effect, since %s is set, which replaces it", spec.Env, name)
		return
	}
	value := kv.Value
	if spec.EnvWhen != "" {
		value = spec.EnvWhen
		n.Env[spec.Env] = "true" // as the key has it
	}
	c.replaced("0.80", kv.Pos, "write \""+name+": "+value+"\" on the node itself",
		"the environment variable %s is the old form of %s, and containerlab ignores it from 0.80 on", spec.Env, name)
}

// processEnv takes the value of a key that is not set from the environment variable that
// containerlab's own process read before there was the key.
func (c *compiler) processEnv(n *node, name string, spec *kinds.Key) {
	if spec.ProcessEnv == "" {
		return
	}
	for _, kv := range c.o.Env {
		variable, value, _ := strings.Cut(kv, "=")
		if variable != spec.ProcessEnv || value == "" || spec.ProcessWhen != "" && strings.ToLower(value) != spec.ProcessWhen {
			continue
		}
		other := spec.Default != "true"
		c.setKey(n, name, spec, other)
		c.o.Reach.UseEnv(variable)
		c.diags.Warnf(CodeDeprecated, diag.Pos{File: c.f.Path}, fmt.Sprintf("write \"%s: %t\" under topology.kinds.%s", name, other, n.WrittenKind),
			"%s in the environment of c9s sets %s to %t for nodes of kind %s; containerlab ignores it from 0.80 on", variable, name, other, n.WrittenKind)
	}
}

// formerComponents warns of the keys and variables of cards that the node or the card
// has as keys since containerlab 0.80, and takes over the new ones.
func (c *compiler) formerComponents(n *node, comp *topology.Component, out *lab.Component) {
	if comp.SFM.IsSet() {
		c.replaced("0.80", comp.SFM.Pos, "write \"sfm: "+comp.SFM.Value+"\" on the node itself", "sfm of a component is the old form of the node's sfm, and containerlab rejects it from 0.80 on")
	}
	for _, key := range []struct {
		name, env string
		value     topology.Int
	}{{"cpu", "cpu", comp.CPU}, {"ram", "ram", comp.RAM}, {"max-nics", "max_nics", comp.MaxNICs}} {
		old, isOld := out.Env[key.env]
		switch {
		case key.value.Set && n.kind != nil && n.kind.Name != "nokia_sros":
			if c.keys.first(key.value.Pos) {
				c.diags.Errorf(kinds.CodeKey, key.value.Pos, "remove it", "kind %q of node %q does not have the key %q in components", n.kind.Name, n.Name, key.name)
			}
		case key.value.Set:
			if isOld {
				c.replaced("0.80", comp.Env.Pos, "remove it from env", "env %s of a component has no effect, since %s is set, which replaces it", key.env, key.name)
			}
			if out.Env == nil {
				out.Env = map[string]string{}
			}
			out.Env[key.env] = strconv.Itoa(key.value.Value)
		case isOld && n.kind != nil && n.kind.Name == "nokia_sros":
			c.replaced("0.80", comp.Env.Pos, "write \""+key.name+": "+old+"\" in the component itself", "env %s of a component is the old form of %s, which containerlab rejects from 0.80 on", key.env, key.name)
		}
	}
}
