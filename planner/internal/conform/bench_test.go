package conform_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/internal/cli"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
	"github.com/c9s-lab/c9s/planner/internal/conform"
)

// commandName is the name under which this test program is c9s.
const commandName = "c9s"

// command is c9s, as a program of its own, with a cache of its own.
type command struct {
	path, planner, cache string
	// sample looks at the memory while it runs, which takes time itself.
	sample bool
}

func newCommand(b *testing.B) *command {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c := &command{path: filepath.Join(b.TempDir(), commandName), planner: programPath(b), cache: b.TempDir()}
	if err := os.Symlink(self, c.path); err != nil {
		b.Fatal(err)
	}
	return c
}

// forget empties the cache.
func (c *command) forget(b *testing.B) {
	b.Helper()
	if err := os.RemoveAll(c.cache); err != nil {
		b.Fatal(err)
	}
}

// rendering is one run of c9s over one topology.
type rendering struct {
	// cpu is the processor time of c9s and all that it started.
	cpu time.Duration
	// memory is the most that they had together, in bytes, if that is sampled.
	memory int64
	// problem is why the lab cannot be rendered, "" for one that can.
	problem string
}

// render renders a topology to nowhere.
func (c *command) render(b *testing.B, topo, planner string) rendering {
	b.Helper()
	var problem bytes.Buffer
	cmd := exec.Command(c.path, "render", topo, "--allow-missing", "--planner", planner, "--planner-path", c.planner)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+c.cache)
	cmd.Stderr = &problem
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	done, most := make(chan struct{}), make(chan int64, 1)
	go func() {
		var max int64
		for c.sample {
			if sum := resident(cmd.Process.Pid); sum > max {
				max = sum
			}
			select {
			case <-done:
				most <- max
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
		most <- 0
	}()
	err := cmd.Wait()
	close(done)
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	r := rendering{cpu: time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), memory: <-most}
	if err != nil {
		r.problem = fmt.Sprintf("%v: %s", err, problem.String())
	}
	return r
}

// resident is the memory of a process and its descendants, in bytes. What they share
// counts once.
func resident(root int) int64 {
	entries, _ := filepath.Glob("/proc/[0-9]*/stat")
	parents := map[int]int{}
	for _, name := range entries {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		// proc(5): the fields after the name in parentheses begin with the third.
		parents[pid], _ = strconv.Atoi(string(bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])[1]))
	}
	var sum int64
	for pid := range parents {
		for p := pid; p > 1; p = parents[p] {
			if p == root {
				sum += proportional(pid)
				break
			}
		}
	}
	return sum
}

// proportional is the proportional set size of a process, in bytes.
func proportional(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			kilobytes, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// load is what /proc/loadavg says of the last minute, for the record.
func load() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

// measure runs a benchmark's body and reports processor seconds and the load of the
// machine beside the wall time.
func measure(b *testing.B, body func() (cpu time.Duration)) {
	b.Helper()
	var cpu time.Duration
	for b.Loop() {
		cpu += body()
	}
	b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(load(), "load")
}

// ringOf is a topology of n nodes in a ring.
func ringOf(b *testing.B, n int, kind, port string) string {
	b.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "name: ring\nmgmt: {ipv4-subnet: 172.20.0.0/16}\ntopology:\n  defaults: {kind: %s, image: 'img:25.7.1'}\n  nodes:\n", kind)
	for i := range n {
		fmt.Fprintf(&text, "    node%d:\n", i)
	}
	text.WriteString("  links:\n")
	for i := range n {
		fmt.Fprintf(&text, "    - endpoints: ['node%d:%s1', 'node%d:%s2']\n", i, port, (i+1)%n, port)
	}
	name := filepath.Join(b.TempDir(), "ring.clab.yml")
	if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	return name
}

// BenchmarkRender compares the planners over large labs, c9s from its start to its end:
// the catalogue, hooks without kept plans (cold) and with them (warm).
func BenchmarkRender(b *testing.B) {
	for _, size := range []struct{ name, topo string }{
		{"linux-1000", ringOf(b, 1000, "linux", "eth")},
		{"srlinux-100", ringOf(b, 100, "nokia_srlinux", "e1-")},
	} {
		c := newCommand(b)
		for _, how := range []string{"builtin", "cold", "warm"} {
			b.Run(size.name+"/"+how, func(b *testing.B) {
				render := func() rendering {
					planner := "hooks"
					if how == "builtin" {
						planner = how
					}
					if how == "cold" {
						c.forget(b)
					}
					r := c.render(b, size.topo, planner)
					if r.problem != "" {
						b.Fatal(r.problem)
					}
					return r
				}
				measure(b, func() time.Duration { return render().cpu })
				// Looking at the memory takes time, hence a run of its own.
				c.sample = true
				b.ReportMetric(float64(render().memory)/1e6, "MB")
				c.sample = false
			})
		}
	}
}

// corpus are the topologies of the public labs beside this checkout. Its index has an id
// in the first column and the topology's path in the ninth.
func corpus(b *testing.B) []string {
	b.Helper()
	const dir = "../../../../shared/corpus"
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		b.Skip("the corpus of public labs is not beside this checkout")
	}
	var topologies []string
	for _, line := range strings.Split(strings.TrimSpace(string(index)), "\n")[1:] {
		fields := strings.Split(line, "\t")
		topologies = append(topologies, filepath.Join(dir, fields[0], filepath.FromSlash(fields[8])))
	}
	return topologies
}

// BenchmarkCorpus renders each public lab beside this checkout by a process of its own.
func BenchmarkCorpus(b *testing.B) {
	topologies := corpus(b)
	c := newCommand(b)
	refused := map[string]bool{}
	for _, how := range []string{"builtin", "cold", "warm"} {
		b.Run(how, func(b *testing.B) {
			measure(b, func() (cpu time.Duration) {
				planner := "auto"
				if how == "builtin" {
					planner = how
				}
				if how == "cold" {
					c.forget(b)
				}
				rendered := 0
				for _, topo := range topologies {
					r := c.render(b, topo, planner)
					cpu += r.cpu
					switch {
					case r.problem == "":
						rendered++
					case how == "builtin":
						refused[topo] = true
					case !refused[topo]:
						b.Errorf("%s is rendered by the catalogue alone: %s", topo, r.problem)
					}
				}
				b.ReportMetric(float64(len(topologies)), "labs")
				b.ReportMetric(float64(rendered), "rendered")
				return cpu
			})
		})
	}
}

// BenchmarkKinds plans a node of each kind with startup-config, licence and certificate:
// by the catalogue, by the hooks in a process that runs already, and from the cache.
func BenchmarkKinds(b *testing.B) {
	all, err := conform.KindLabs(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	var labs []*lab.Lab
	for i, l := range all {
		// The second form of each kind has all files.
		if n := l.Nodes[0]; i > 0 && all[i-1].Nodes[0].Kind == n.Kind && (i == 1 || all[i-2].Nodes[0].Kind != n.Kind) {
			labs = append(labs, l)
		}
	}
	catalogue := plan.NewBuiltin(kinds.Builtin(), plan.WithTemplateFuncs(topology.TemplateFuncs()))
	planner := func(cache string) *plan.Auto {
		h := plan.NewHooks(programPath(b), plan.WithProcesses(1))
		b.Cleanup(func() { h.Close() })
		return plan.NewAuto(h, catalogue, cache)
	}
	cold, warm := planner(""), planner(b.TempDir())
	for _, l := range labs {
		for _, how := range []struct {
			name    string
			planner plan.Planner
		}{{"builtin", catalogue}, {"cold", cold}, {"warm", warm}} {
			b.Run(l.Nodes[0].Kind+"/"+how.name, func(b *testing.B) {
				// Once before: a process is started, and a plan is kept.
				if _, err := how.planner.Plan(context.Background(), l, l.Nodes[0]); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := how.planner.Plan(context.Background(), l, l.Nodes[0]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// asCommand is c9s.
func asCommand() int { return cli.Main(os.Args[1:], cli.System()) }
