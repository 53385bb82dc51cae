//go:build linux

package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/proto"
)

// A fabric in a process of its own, as a Pod has it: the test's binary runs again
// in the Pod's namespace.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	name string
}

type processConfig struct {
	Pod     string
	Encrypt bool
	Near    bool // the worker's folder is descriptor 3
	Where   map[string]netip.Addr
	Wires   []Wire
}

const (
	processEnv = "C9S_WIRE_TEST_PROCESS"
	askPort    = 14802 // processes listen there
)

func TestMain(m *testing.M) {
	if c := os.Getenv(processEnv); c != "" {
		if err := runProcess(c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

type fixedResolver map[string]netip.Addr

func (r fixedResolver) Lookup(_ context.Context, pod string) ([]netip.Addr, error) {
	return []netip.Addr{r[pod]}, nil
}

// runProcess runs a fabric until its standard input ends. It prints a line when
// all wires are up.
func runProcess(config string) error {
	var c processConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	opt := Options{Lab: "lab", Pod: c.Pod, Key: []byte("a key for tests"), Encrypt: c.Encrypt, Underlay: "c9s0", AskPort: askPort, Resolver: fixedResolver(c.Where)}
	if c.Near {
		opt.Folder = 3
	}
	f, err := New(opt)
	if err != nil {
		return err
	}
	asked, err := net.Listen("tcp", fmt.Sprintf(":%d", askPort))
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := asked.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	if err := f.Set(c.Wires); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	go func() {
		for !upAndReady(f, c.Wires) {
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Println("ready")
	}()
	err = f.Run(ctx)
	json.NewEncoder(os.Stdout).Encode(f.Status())
	f.Close()
	return err
}

func upAndReady(f *Fabric, wires []Wire) bool {
	s := f.Status()
	for i, w := range s.Wires {
		if !w.Up || w.PathMTU != s.UnderlayMTU || w.Datapath != wires[i].Datapath || w.RemoteDatapath != w.Datapath {
			return false
		}
	}
	return true
}

// process starts one for the Pod, which has no other that runs.
func (p *testPod) process(encrypt bool) *process {
	t := p.lab.t
	where := map[string]netip.Addr{}
	for name, a := range p.lab.where {
		where[name] = a[0]
	}
	config, err := json.Marshal(processConfig{Pod: p.name, Encrypt: encrypt, Near: p.worker != nil, Where: where, Wires: p.wires})
	fatal(t, err)
	c := &process{t: t, name: p.name, cmd: exec.Command("/proc/self/exe")}
	c.cmd.Env = append(os.Environ(), processEnv+"="+string(config))
	c.cmd.Stderr = os.Stderr
	if p.worker != nil {
		c.cmd.ExtraFiles = []*os.File{p.worker}
	}
	c.in, err = c.cmd.StdinPipe()
	fatal(t, err)
	out, err := c.cmd.StdoutPipe()
	fatal(t, err)
	c.out = bufio.NewReader(out)
	p.ns.do(func() { err = c.cmd.Start() }) // a child is where its parent's thread is
	fatal(t, err)
	if p.proc == nil { // once: a soak starts thousands
		t.Cleanup(func() { p.proc.stop() })
	}
	p.proc = c
	return c
}

func (c *process) ready() {
	c.t.Helper()
	if _, err := c.out.ReadString('\n'); err != nil {
		c.t.Fatalf("the fabric of %s did not come up: %v", c.name, err)
	}
}

func (c *process) stop() {
	if c.cmd == nil {
		return
	}
	c.in.Close()
	status, _ := io.ReadAll(c.out)
	c.cmd.Wait()
	c.cmd = nil
	if os.Getenv("WIRE_STATUS") != "" {
		fmt.Printf("%s %s", c.name, status)
	}
}

func (c *process) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
	c.cmd = nil
}

// TestKillLoop kills a process at any moment; the next one picks up what is there.
func TestKillLoop(t *testing.T) {
	l := newLab(t, 1600, nil)
	a, b := l.pod("a"), l.pod("b")
	l.wire(1, a, b, 1500, func(w *Wire) { w.Datapath = DatapathVXLAN })
	b.start()
	ping := a.dev.pinger(t)
	for i := range 8 {
		p := a.process(false)
		if i < 7 {
			time.Sleep(time.Duration(i*7) * time.Millisecond)
			p.kill()
			continue
		}
		p.ready()
		waitUp(t, 1, b)
		if _, err := ping.ping("192.168.1.2", 1000, 1); err != nil {
			t.Error(err)
		}
		p.kill()
	}
	eventually(t, "carrier down after the kill", func() bool { return !b.dev.carrier("eth1") })
}

// TestStarvedPeer stops a process, as if it got no processor time: its wires stay up,
// and go on when it does; when it is killed they go down.
func TestStarvedPeer(t *testing.T) {
	l := newLab(t, 1500, func(o *Options) { o.AskPort = askPort })
	a, b := l.pod("a"), l.pod("b")
	l.wire(1, a, b, 1500, nil)
	b.start()
	p := a.process(false)
	p.ready()
	waitUp(t, 1, b)
	ping := a.dev.pinger(t)
	ping.limit = patience
	since := b.status(1).Since
	fatal(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(4 * proto.LostAfter) // time in which it could be lost
	if s := b.status(1); !s.Up || s.Since != since {
		t.Errorf("the wire of a process that does not run is down: %+v", s)
	}
	fatal(t, p.cmd.Process.Signal(syscall.SIGCONT))
	if _, err := ping.ping("192.168.1.2", 100, 1); err != nil {
		t.Error(err)
	}
	if s := b.status(1); !s.Up || s.Since != since {
		t.Errorf("the wire of a process that runs again: %+v", s)
	}
	p.kill()
	took := eventually(t, "carrier down after the kill", func() bool { return !b.dev.carrier("eth1") })
	t.Logf("carrier down %v after the kill", took)
}

// TestIdle measures a process with 8 wires to 8 Pods. WIRE_IDLE is for how many
// seconds, and has its memory judged.
func TestIdle(t *testing.T) {
	d := seconds("WIRE_IDLE", 1)
	l := newLab(t, 1500, nil)
	a := l.pod("hub")
	for i := 1; i <= 8; i++ {
		p := l.pod(fmt.Sprintf("p%d", i))
		l.wire(i, a, p, 1500, nil)
		p.start()
	}
	c := a.process(false)
	c.ready()
	time.Sleep(time.Second)
	cpu := func() time.Duration { return cpuTime(t, c.cmd.Process.Pid) }
	from := cpu()
	time.Sleep(d)
	used := cpu() - from
	rss := residentKiB(t, c.cmd.Process.Pid)
	t.Logf("idle with 8 wires: %.2f mCPU, %d KiB resident", used.Seconds()/d.Seconds()*1000, rss)
	if os.Getenv("WIRE_IDLE") != "" && rss > 40<<10 {
		t.Error("too much memory")
	}
}

// cpuTime is what a process ran, from its threads' schedstat.
func cpuTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	fatal(t, err)
	total := time.Duration(0)
	for _, th := range threads {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, th.Name()))
		var ns int64
		if err == nil {
			fmt.Sscan(string(b), &ns)
		}
		total += time.Duration(ns)
	}
	return total
}

func residentKiB(t testing.TB, pid int) int {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	fatal(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var n int
		if k, _ := fmt.Sscanf(s.Text(), "VmRSS: %d", &n); k == 1 {
			return n
		}
	}
	return 0
}
