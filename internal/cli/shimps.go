//go:build !nocluster

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
)

type dockerPs struct {
	all, quiet, whole, latest bool
	last                      int
	filters                   []string
	format                    string
}

func newDockerPs(world IO) *cobra.Command {
	f := &dockerPs{}
	cmd := &cobra.Command{
		Use:     "ps",
		Short:   "List the nodes of all labs",
		Example: "  docker ps -a --filter name=clab-mylab --format '{{.Names}} {{.Status}}'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), world)
		},
	}
	fs := cmd.Flags()
	fs.BoolVarP(&f.all, "all", "a", false, "also list those that do not run")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print only IDs")
	fs.BoolVar(&f.whole, "no-trunc", false, "do not shorten IDs and commands")
	fs.BoolVarP(&f.latest, "latest", "l", false, "print the newest container")
	fs.IntVarP(&f.last, "last", "n", -1, "print the newest containers, this many")
	fs.StringArrayVarP(&f.filters, "filter", "f", nil, "KEY=VALUE: id, name, label, status, ancestor, exited, health, network")
	fs.StringVar(&f.format, "format", "", "Go template, table TEMPLATE, table or json")
	ignoreFlags(cmd, []string{"size"})
	return cmd
}

func (f *dockerPs) run(ctx context.Context, world IO) error {
	match, err := psFilter(f.filters)
	if err != nil {
		return err
	}
	client, err := (&targetFlags{}).connect(ctx, world)
	if err != nil {
		return err
	}
	labs, err := client.Labs(ctx, "")
	if err != nil {
		return fail(err)
	}
	list, err := containersOf(ctx, client, labs)
	if err != nil {
		return fail(err)
	}
	return fail(f.print(world.Out, f.choose(list, match)))
}

// choose returns the containers to print, the newest first, as docker does.
func (f *dockerPs) choose(list []cluster.Container, match func(*cluster.Container) bool) []cluster.Container {
	all := f.all || f.latest || f.last >= 0 || slices.ContainsFunc(f.filters, func(s string) bool { return strings.HasPrefix(s, "status=") || strings.HasPrefix(s, "exited=") })
	list = slices.DeleteFunc(slices.Clone(list), func(c cluster.Container) bool { return !all && !c.Running() || !match(&c) })
	slices.SortStableFunc(list, func(a, b cluster.Container) int { return createdAt(&b).Compare(createdAt(&a)) })
	switch {
	case f.latest:
		list = list[:min(1, len(list))]
	case f.last >= 0:
		list = list[:min(f.last, len(list))]
	}
	return list
}

// createdAt is when a container's Pod was made.
func createdAt(c *cluster.Container) time.Time {
	if c.Pod == nil {
		return time.Time{}
	}
	return c.Pod.CreationTimestamp.Time
}

// psFilter reads docker's filters. Several values of one key are alternatives, but for labels.
func psFilter(filters []string) (func(*cluster.Container) bool, error) {
	by := map[string][]string{}
	for _, text := range filters {
		key, value, found := strings.Cut(text, "=")
		if !found {
			return nil, fmt.Errorf("--filter %q: use KEY=VALUE", text)
		}
		by[key] = append(by[key], value)
	}
	tests := map[string]func(*cluster.Container, string) bool{
		"id": func(c *cluster.Container, v string) bool { return strings.HasPrefix(c.ID, v) },
		"name": func(c *cluster.Container, v string) bool {
			found, err := regexp.MatchString(strings.Replace(v, "^/", "^", 1), c.LongName)
			return err == nil && found
		},
		"status": func(c *cluster.Container, v string) bool { return c.Word() == v },
		"ancestor": func(c *cluster.Container, v string) bool {
			return c.Image == v || strings.HasPrefix(c.Image, v+":")
		},
		"exited": func(c *cluster.Container, v string) bool {
			return c.State != nil && c.State.State.Terminated != nil && strconv.Itoa(int(c.State.State.Terminated.ExitCode)) == v
		},
		"health": func(c *cluster.Container, v string) bool {
			return c.Running() && (v == "healthy") == c.State.Ready && (v == "healthy" || v == "starting" || v == "unhealthy")
		},
		"network": func(_ *cluster.Container, v string) bool { return v == mgmtNetwork },
	}
	labels := by["label"]
	delete(by, "label")
	for key := range by {
		if tests[key] == nil {
			return nil, fmt.Errorf("--filter %s: use id, name, label, status, ancestor, exited, health or network", key)
		}
	}
	return func(c *cluster.Container) bool {
		for _, label := range labels {
			key, value, has := strings.Cut(label, "=")
			got, there := containerLabels(c)[key]
			if !there || has && got != value {
				return false
			}
		}
		for key, values := range by {
			if !slices.ContainsFunc(values, func(v string) bool { return tests[key](c, v) }) {
				return false
			}
		}
		return true
	}, nil
}

// psRow is a container with the fields of docker's templates.
type psRow struct {
	Command, CreatedAt, ID, Image, Labels, LocalVolumes, Mounts, Names, Networks, Ports, RunningFor, Size, State, Status string

	labels map[string]string
}

// Label returns the value of a label.
func (r psRow) Label(name string) string {
	if r.labels == nil { // the head of a table
		return name
	}
	return r.labels[name]
}

// psHead is the head of a table of rows.
var psHead = psRow{
	Command: "COMMAND", CreatedAt: "CREATED AT", ID: "CONTAINER ID", Image: "IMAGE", Labels: "LABELS", LocalVolumes: "LOCAL VOLUMES", Mounts: "MOUNTS",
	Names: "NAMES", Networks: "NETWORKS", Ports: "PORTS", RunningFor: "CREATED", Size: "SIZE", State: "STATE", Status: "STATUS",
}

// psTable is docker's usual table.
const psTable = `table {{.ID}}\t{{.Image}}\t{{.Command}}\t{{.RunningFor}}\t{{.Status}}\t{{.Ports}}\t{{.Names}}`

func (f *dockerPs) row(c *cluster.Container) psRow {
	labels := containerLabels(c)
	var list []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, k+"="+labels[k])
	}
	path, args := commandOf(c)
	command := strings.Join(append([]string{path}, args...), " ")
	id := c.ID
	if !f.whole {
		id = shortID(id)
		if len(command) > 20 {
			command = command[:19] + "…"
		}
	}
	made := createdAt(c)
	return psRow{
		Command: strconv.Quote(strings.TrimSpace(command)), CreatedAt: made.Format("2006-01-02 15:04:05 -0700 MST"), ID: id, Image: c.Image, Labels: strings.Join(list, ","),
		LocalVolumes: "0", Names: c.LongName, Networks: mgmtNetwork, RunningFor: duration.HumanDuration(time.Since(made)) + " ago", Size: "0B", State: c.Word(), Status: containerStatus(c),
		labels: labels,
	}
}

func (f *dockerPs) print(w io.Writer, list []cluster.Container) error {
	format := f.format
	switch {
	case f.quiet && (format == "" || format == "table"):
		format = "{{.ID}}"
	case format == "" || format == "table":
		format = psTable
	}
	rows := make([]any, 0, len(list))
	for i := range list {
		rows = append(rows, f.row(&list[i]))
	}
	return printTemplate(w, format, rows, psHead)
}

// printTemplate prints a line for each value, by a template as docker takes it: with "table " at
// its beginning as a table with a head, "json" as JSON.
func printTemplate(w io.Writer, format string, rows []any, head any) error {
	body, asTable := strings.CutPrefix(format, "table ")
	if body == "json" {
		body = "{{json .}}"
	}
	body = strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(body)
	t, err := template.New("format").Funcs(dockerFunctions).Parse(body)
	if err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	if asTable && head != nil {
		rows = append([]any{head}, rows...)
	}
	var text bytes.Buffer
	for _, row := range rows {
		line, err := executeTemplate(t, row)
		if err != nil {
			return fmt.Errorf("--format: %w", err)
		}
		text.WriteString(line + "\n")
	}
	if !asTable {
		_, err := w.Write(text.Bytes())
		return err
	}
	columns := tabwriter.NewWriter(w, 10, 0, 3, ' ', 0)
	if _, err := io.WriteString(columns, show.Text(text.String())); err != nil {
		return err
	}
	return columns.Flush()
}

// executeTemplate executes a template for a value. Like docker, it tries the keys of the value's
// JSON where a field has another name, as Id.
func executeTemplate(t *template.Template, row any) (string, error) {
	var out bytes.Buffer
	err := t.Execute(&out, row)
	if err == nil {
		return out.String(), nil
	}
	var raw any
	data, bad := json.Marshal(row)
	if bad == nil {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		bad = dec.Decode(&raw)
	}
	out.Reset()
	if bad != nil || t.Option("missingkey=error").Execute(&out, raw) != nil {
		return "", err
	}
	return out.String(), nil
}

// dockerFunctions are those of docker's templates.
var dockerFunctions = template.FuncMap{
	"json": func(v any) (string, error) {
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		err := enc.Encode(v)
		return strings.TrimSpace(out.String()), err
	},
	"split": strings.Split,
	"join":  strings.Join,
	"title": func(s string) string {
		if s == "" {
			return ""
		}
		return strings.ToUpper(s[:1]) + s[1:]
	},
	"lower": strings.ToLower,
	"upper": strings.ToUpper,
	"pad": func(s string, before, after int) string {
		return strings.Repeat(" ", max(0, min(before, 100))) + s + strings.Repeat(" ", max(0, min(after, 100)))
	},
	"truncate": func(s string, n int) string { return s[:max(0, min(n, len(s)))] },
}

type dockerInspect struct {
	format string
	kind   string
}

func newDockerInspect(world IO) *cobra.Command {
	f := &dockerInspect{}
	cmd := &cobra.Command{
		Use:     "inspect CONTAINER...",
		Short:   "Print a node as docker's JSON, or by a template",
		Example: "  docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' clab-mylab-R1",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	cmd.Flags().StringVarP(&f.format, "format", "f", "", "Go template, or json")
	cmd.Flags().StringVar(&f.kind, "type", "", "container")
	ignoreFlags(cmd, []string{"size"})
	return cmd
}

func (f *dockerInspect) run(ctx context.Context, world IO, names []string) error {
	if f.kind != "" && f.kind != "container" {
		return fmt.Errorf("--type %s: there are only containers", f.kind)
	}
	client, err := (&targetFlags{}).connect(ctx, world)
	if err != nil {
		return err
	}
	found := []any{}
	var missing []error
	for _, name := range names {
		c, err := findContainer(ctx, client, name)
		if err != nil {
			missing = append(missing, err)
			continue
		}
		mgmt, err := client.Management(ctx, c.Lab, c.Deployment)
		if err != nil {
			mgmt = nil // its lengths are not known then
		}
		found = append(found, inspectDocker(&c.Container, addressesOf(&c.Container, mgmt)))
	}
	if f.format == "" || f.format == "json" {
		err = printJSON(world.Out, found)
	} else {
		err = printTemplate(world.Out, f.format, found, nil)
	}
	return fail(errors.Join(append(missing, err)...))
}

// dockerContainer is docker's description of a container, with the fields that scripts read.
type dockerContainer struct {
	ID      string `json:"Id"`
	Created string
	Path    string
	Args    []string
	State   dockerState
	Image   string
	Name    string

	RestartCount int
	Driver       string
	Platform     string
	HostConfig   struct {
		NetworkMode string
		Privileged  bool
	}
	Mounts []dockerMount
	Config struct {
		Hostname   string
		User       string
		Tty        bool
		OpenStdin  bool
		Env        []string
		Cmd        []string
		Entrypoint []string
		Image      string
		WorkingDir string
		Labels     map[string]string
	}
	NetworkSettings struct {
		dockerNetwork
		Ports    map[string][]struct{ HostIp, HostPort string }
		Networks map[string]*dockerNetwork
	}
}

// dockerState is the state of a container. There is no process of the worker to enter, so Pid
// is 0.
type dockerState struct {
	Status     string
	Running    bool
	Paused     bool
	Restarting bool
	OOMKilled  bool
	Dead       bool
	Pid        int
	ExitCode   int
	Error      string
	StartedAt  string
	FinishedAt string
	Health     *struct{ Status string } `json:",omitempty"`
}

type dockerMount struct {
	Type        string
	Source      string
	Destination string
	Mode        string
	RW          bool
}

// dockerNetwork is a network of a container. Docker calls lengths of prefixes and gateways of
// IPv6 so.
type dockerNetwork struct {
	Gateway             string
	IPAddress           string
	IPPrefixLen         int
	IPv6Gateway         string
	GlobalIPv6Address   string
	GlobalIPv6PrefixLen int
	MacAddress          string
}

// inspectDocker describes a container.
func inspectDocker(c *cluster.Container, a mgmtAddresses) dockerContainer {
	path, args := commandOf(c)
	spec := specOf(c)
	network := dockerNetwork{a.IPv4Gw, a.IPv4addr, a.IPv4pLen, a.IPv6Gw, a.IPv6addr, a.IPv6pLen, c.Directory.MAC}
	out := dockerContainer{
		ID: c.ID, Created: createdAt(c).UTC().Format(time.RFC3339Nano), Path: path, Args: args, Image: c.Image, Name: "/" + c.LongName,
		RestartCount: restartsOf(c), Driver: "kubernetes", Platform: "linux", State: dockerStateOf(c), Mounts: []dockerMount{},
	}
	out.HostConfig.NetworkMode = mgmtNetwork
	if s := spec.SecurityContext; s != nil && s.Privileged != nil {
		out.HostConfig.Privileged = *s.Privileged
	}
	for _, m := range spec.VolumeMounts {
		out.Mounts = append(out.Mounts, dockerMount{"bind", m.Name, m.MountPath, "", !m.ReadOnly})
	}
	out.Config.Hostname, out.Config.Image, out.Config.Tty, out.Config.OpenStdin = c.Name, c.Image, spec.TTY, spec.Stdin
	out.Config.Cmd, out.Config.Entrypoint, out.Config.WorkingDir, out.Config.Labels = spec.Args, spec.Command, spec.WorkingDir, containerLabels(c)
	for _, e := range spec.Env {
		out.Config.Env = append(out.Config.Env, e.Name+"="+e.Value)
	}
	out.NetworkSettings.dockerNetwork = network
	out.NetworkSettings.Ports = map[string][]struct{ HostIp, HostPort string }{}
	out.NetworkSettings.Networks = map[string]*dockerNetwork{mgmtNetwork: &network}
	return out
}

func dockerStateOf(c *cluster.Container) dockerState {
	out := dockerState{Status: c.Word(), Running: c.Running(), StartedAt: "0001-01-01T00:00:00Z", FinishedAt: "0001-01-01T00:00:00Z"}
	out.Restarting = out.Status == "restarting"
	if c.State == nil {
		return out
	}
	if r := c.State.State.Running; r != nil {
		out.StartedAt = r.StartedAt.UTC().Format(time.RFC3339Nano)
		word := "starting"
		if c.State.Ready {
			word = "healthy"
		}
		out.Health = &struct{ Status string }{word}
	}
	t := c.State.State.Terminated
	if t == nil {
		t = c.State.LastTerminationState.Terminated
	}
	if t == nil {
		return out
	}
	out.FinishedAt = t.FinishedAt.UTC().Format(time.RFC3339Nano)
	if !out.Running {
		out.ExitCode, out.OOMKilled, out.StartedAt = int(t.ExitCode), t.Reason == "OOMKilled", t.StartedAt.UTC().Format(time.RFC3339Nano)
	}
	return out
}
