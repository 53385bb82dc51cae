package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// draft is a plan under construction.
type draft struct {
	ctx      context.Context // of the one call of Plan
	planner  *Builtin
	lab      *lab.Lab
	node     *lab.Node
	kind     *kinds.Kind
	data     *NodeData
	plan     *Plan
	problems diag.List
	// suppressed is the startup-config file that must not exist.
	suppressed string
	// defaults are the startup-configs that the node gets if it declares none.
	defaults map[string]bool
	// missing is the warning about what c9s does not support for the kind.
	missing string
	// templatePartial marks a partial startup-config that is a template.
	templatePartial bool
	// unknownField marks a startup-config that fails only when it is executed.
	unknownField bool
}

// behaviour is what a kind needs beyond its catalogue entry. Each function may be nil.
type behaviour struct {
	// prepare runs before anything is expanded.
	prepare func(*draft)
	// startup stages the startup-config instead of the general rule.
	startup func(*draft)
	// finish completes the plan.
	finish func(*draft)
	// always completes a plan, whoever made it.
	always func(*draft, *Plan)
}

var behaviours = map[string]behaviour{
	"iol":     {prepare: iolPrepare},
	"ceos":    {prepare: ceosManagement, finish: ceosFlash},
	"srlinux": {prepare: srlinuxPrepare, startup: srlinuxStartup},
	"sros":    {prepare: srosPrepare},
	"srsim":   {prepare: srsimPrepare, startup: srsimStartup, finish: srsimCards, always: srsimFinish},
}

// fill completes the plan of a node with a known kind.
func (d *draft) fill() {
	k, p := d.kind, d.plan
	p.LinkApplyMode = cmp.Or(d.node.LinkApplyMode, k.LinkApplyMode)
	d.warnMissing()
	d.interfaces()
	if k.RootNamespace {
		d.rootNamespace()
		return
	}
	d.data = newNodeData(d)
	if !d.checkType() {
		return
	}
	do := behaviours[k.Behaviour]
	if do.prepare != nil {
		do.prepare(d)
	}
	d.environment()
	d.needs()
	d.files()
	d.license()
	if do.startup != nil {
		do.startup(d)
	} else {
		d.startup()
	}
	d.container()
	d.steps()
	d.readiness()
	if do.finish != nil {
		do.finish(d)
	}
	if do.always != nil {
		do.always(d, d.plan)
	}
	d.plan.Steps = append(d.plan.Steps, UserSteps(d.node, d.plan.Containers)...)
	d.plan.Files = SortFiles(d.plan.Files)
}

// warnMissing warns about what neither planner supports. The warning is the same for every
// node of the kind, so that diag.Collapse folds them.
func (d *draft) warnMissing() {
	if len(d.kind.Missing) == 0 {
		return
	}
	d.missing = fmt.Sprintf("kind %s is not carried in full: %s", d.kind.Name, strings.Join(d.kind.Missing, "; "))
	d.problems.Warnf(CodeKindIncomplete, d.node.Pos, "configure it on the device, or with exec", "%s", d.missing)
}

func (d *draft) interfaces() {
	for _, e := range d.node.Endpoints {
		d.plan.Interfaces = append(d.plan.Interfaces, Interface{Name: e.Interface, Alias: e.Alias, MAC: e.MAC})
	}
}

// rootNamespace plans a bridge, an ovs-bridge or the host, which have no container.
func (d *draft) rootNamespace() {
	n := d.node
	if n.StartupConfig != nil {
		d.ignoredStartup()
	}
	if len(n.Exec) > 0 {
		d.problems.Warnf(CodeKindIncomplete, n.Pos, "give the commands to a node of kind linux",
			"node %q: exec of kind %s is not run, since it has no container", n.Name, d.kind.Name)
	}
}

// checkType sets the node's type and reports whether the kind has it.
func (d *draft) checkType() bool {
	t, n := d.kind.Types, d.node
	if d.data.NodeType == "" {
		d.data.NodeType = t.Default
	}
	if d.data.NodeType == "" && t.Required {
		d.problems.Errorf(CodeNodeType, n.Pos, "add type: with one of "+typeNames(t), "node %q: kind %s needs a type", n.Name, d.kind.Name)
		return false
	}
	if len(t.Values) == 0 {
		return true
	}
	name := cmp.Or(d.data.NodeType, t.FromImage(d.data.Image), t.Assumed)
	if t.IgnoreCase {
		name = strings.ToLower(name)
	}
	var ok bool
	if d.data.TypeData, ok = t.Values[name]; !ok && name != "" && !t.Open {
		d.problems.Errorf(CodeNodeType, n.Pos, typeHint(t, name), "node %q: kind %s has no type %q", n.Name, d.kind.Name, d.data.NodeType)
		return false
	}
	return true
}

// typeHint names the type that was likely meant, or else all.
func typeHint(t kinds.Types, name string) string {
	if near := strictyaml.Nearest(name, slices.Collect(maps.Keys(t.Values))); near != "" {
		return "did you mean \"" + near + "\"?"
	}
	return "use one of " + typeNames(t)
}

func typeNames(t kinds.Types) string {
	return strings.Join(slices.Sorted(maps.Keys(t.Values)), ", ")
}

func (d *draft) needs() {
	k, n := d.kind, d.node
	d.plan.StopSignal = k.StopSignal
	d.plan.Needs = Needs{
		KVM:       k.VM,
		SSSE3:     k.Needs.SSSE3,
		MinCPU:    k.Needs.MinCPU,
		MinMemory: int64(k.Needs.MinMemory) << 30,
		License:   k.License.Policy,
		Certificate: k.Certificate == "always" ||
			k.Certificate == "optional" && n.Certificate.Issue ||
			slices.ContainsFunc(n.Mounts, func(m lab.Mount) bool { return len(m.Certificates) > 0 }),
	}
	d.plan.Credentials = d.data.Credentials
	d.plan.Ports = k.Ports
	for _, p := range k.Persist {
		d.plan.Persist = append(d.plan.Persist, d.expand(p))
	}
}

// readiness uses the healthcheck of the topology, or else that of the kind.
func (d *draft) readiness() {
	k, n := d.kind.Readiness, d.node
	switch {
	case k != nil && (k.Force || n.Healthcheck == nil):
		h := lab.Healthcheck{
			Interval: k.Interval, Timeout: k.Timeout, Retries: k.Retries, StartPeriod: k.StartPeriod,
			Test: d.expandAll(k.Test),
		}
		d.plan.Readiness = &Readiness{Healthcheck: h, Reason: cmp.Or(k.Reason, "kind")}
	case n.Healthcheck != nil && (len(n.Healthcheck.Test) == 0 || n.Healthcheck.Test[0] != "NONE"):
		d.plan.Readiness = &Readiness{Healthcheck: *n.Healthcheck, Reason: "topology"}
	}
}

// SortFiles adds missing parent folders and sorts by path. Of several entries with the
// same path it keeps the last.
func SortFiles(files []File) []File {
	files = slices.Clone(withParents(files))
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	kept := files[:0]
	for i, f := range files {
		if i+1 == len(files) || files[i+1].Path != f.Path {
			kept = append(kept, f)
		}
	}
	return kept
}

// withParents adds the missing parent folders of the files.
func withParents(files []File) []File {
	there := make(map[string]bool, len(files))
	for _, f := range files {
		there[path.Clean(f.Path)] = true
	}
	for i := range files {
		for dir := path.Dir(path.Clean(files[i].Path)); dir != "." && !there[dir]; dir = path.Dir(dir) {
			there[dir] = true
			files = append(files, File{Path: dir, Dir: true, Mode: 0o777})
		}
	}
	return files
}

// addFile adds a file at its cleaned path.
func (d *draft) addFile(f File) {
	f.Path = path.Clean(f.Path)
	d.plan.Files = append(d.plan.Files, f)
}
