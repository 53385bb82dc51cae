package podnet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/hold"
)

// The test binary is the sidecar too, so that it runs in a namespace as a process
// of its own, which can be killed.
const podEnv = "C9S_TEST_POD"

// helperEnv makes it the helper in a device's container, at that socket.
const helperEnv = "C9S_TEST_HELPER"

// liarEnv makes it one that offers another namespace there.
const liarEnv = "C9S_TEST_LIAR"

// The first thread is where /proc/<pid>/ns/net looks; see c9s-sidecar.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	if socket := os.Getenv(helperEnv); socket != "" {
		endWithTests()
		hold.Keep(context.Background(), socket)
	}
	if socket := os.Getenv(liarEnv); socket != "" {
		endWithTests()
		lie(socket)
	}
	if text := os.Getenv(podEnv); text != "" {
		os.Exit(podMain(text))
	}
	os.Exit(m.Run())
}

func podMain(text string) int {
	var cfg Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := runPod(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runPod(ctx context.Context, cfg Config) (err error) {
	const child = "child"
	if len(os.Args) == 2 && os.Args[1] == child {
		if cfg.Device, err = hold.Device(); err != nil {
			return err
		}
		return Run(ctx, cfg)
	}
	endWithTests()
	return hold.Supervise(ctx, hold.Options{
		PodIPs: cfg.PodIPs, StateDir: cfg.StateDir, Dir: StateFolder(cfg.StateDir), Log: cfg.Log, Command: []string{"/proc/self/exe", child},
	})
}

// endWithTests ends the process with the tests: the end of a pipe.
func endWithTests() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs the ip program of iproute2")
	}
}

// cluster is a network of Pods: a bridge in a namespace of its own, which is also
// the worker and the world outside.
type cluster struct {
	t    *testing.T
	name string
	dir  string
	pods []*pod
	next int
}

const (
	gateway4 = "10.244.0.1"
	gateway6 = "fd00:244::1"
)

func newCluster(t *testing.T) *cluster {
	t.Helper()
	needRoot(t)
	c := &cluster{t: t, name: fmt.Sprintf("c9st%d-%d", os.Getpid(), time.Now().UnixNano()%1e6), dir: t.TempDir(), next: 10}
	c.ip("netns", "add", c.name)
	t.Cleanup(func() {
		for _, p := range c.pods {
			p.remove()
		}
		run("ip", "netns", "del", c.name)
	})
	c.in("ip link set lo up")
	c.in("ip link add br0 type bridge forward_delay 0")
	c.in("ip link set br0 up")
	c.in("ip addr add " + gateway4 + "/24 dev br0")
	c.in("ip addr add " + gateway6 + "/64 dev br0 nodad")
	return c
}

func (c *cluster) ip(args ...string) {
	c.t.Helper()
	if out, err := run("ip", args...); err != nil {
		c.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// in runs a command line in the cluster's namespace.
func (c *cluster) in(line string) string { c.t.Helper(); return inNS(c.t, c.name, line) }

func inNS(t *testing.T, ns, line string) string {
	t.Helper()
	out, err := run("ip", append([]string{"netns", "exec", ns}, strings.Fields(line)...)...)
	if err != nil {
		t.Fatalf("%s in %s: %v: %s", line, ns, err, out)
	}
	return out
}

// run returns what a command prints; of one that fails also what it complains of.
// ip complains of other people's stale namespaces without failing.
func run(name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

// pod is a Pod: a namespace with what a CNI plugin leaves, and files. ns is the
// device's.
type pod struct {
	c    *cluster
	t    *testing.T
	ns   string
	name string
	ip4  string
	ip6  string
	dir  string
	doc  contract.Links
	// cmd is the sidecar's supervisor, helper the second holder of its namespace.
	cmd    *exec.Cmd
	helper *exec.Cmd
	log    *os.File
	// only is "IPv4 only" or "IPv6 only" for a Pod of one family.
	only string
}

func (p *pod) addrs() []netip.Addr {
	both := []netip.Addr{netip.MustParseAddr(p.ip4), netip.MustParseAddr(p.ip6)}
	switch p.only {
	case "IPv4 only":
		return both[:1]
	case "IPv6 only":
		return both[1:]
	}
	return both
}

// newPod makes a Pod as a bridge plugin does: an address in the network's prefix
// and a default route.
func (c *cluster) newPod(name string, doc contract.Links) *pod {
	c.t.Helper()
	return c.newPodBy(name, doc, (*pod).plug)
}

// newPodBy has another CNI plugin.
func (c *cluster) newPodBy(name string, doc contract.Links, plug func(*pod)) *pod {
	c.t.Helper()
	p := &pod{c: c, t: c.t, name: name, doc: doc, dir: filepath.Join(c.dir, name)}
	for _, dir := range []string{"links", "directory", "plan", "state/exec/" + name, "key"} {
		if err := os.MkdirAll(filepath.Join(p.dir, dir), 0o755); err != nil {
			c.t.Fatal(err)
		}
	}
	p.write("hosts", "127.0.0.1\tlocalhost\n")
	c.pods = append(c.pods, p)
	plug(p)
	p.doc.Version, p.doc.Pod = contract.LinksVersion, name
	if p.doc.Lab == "" {
		p.doc.Lab = "demo"
	}
	p.apply()
	return p
}

// plug makes the namespace with a new address.
func (p *pod) plug() {
	n := p.makeNS()
	p.ip4, p.ip6 = fmt.Sprintf("10.244.0.%d", n), fmt.Sprintf("fd00:244::%d", n)
	p.c.in(fmt.Sprintf("ip link add v%d type veth peer name eth0 netns %s", n, p.ns))
	p.c.in(fmt.Sprintf("ip link set v%d master br0 up", n))
	p.in("ip link set eth0 up")
	p.in("ip addr add " + p.ip4 + "/24 dev eth0")
	p.in("ip addr add " + p.ip6 + "/64 dev eth0 nodad")
	p.in("ip route add default via " + gateway4)
	p.in("ip -6 route add default via " + gateway6)
}

// makeNS makes the namespace, and returns its number.
func (p *pod) makeNS() int {
	n := p.c.next
	p.c.next++
	p.ns = fmt.Sprintf("%s-%d", p.c.name, n)
	p.c.ip("netns", "add", p.ns)
	p.in("ip link set lo up")
	return n
}

func (p *pod) in(line string) string { p.t.Helper(); return inNS(p.t, p.ns, line) }

func (p *pod) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path+".tmp", []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pod) writeJSON(name string, v any) {
	p.t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(name, string(data))
}

func (p *pod) apply() { p.t.Helper(); p.writeJSON("links/links.json", p.doc) }

func (p *pod) config() Config {
	return Config{
		PodIPs:  p.addrs(),
		PodName: p.name, Namespace: "test", NodeName: "worker", Version: "test",
		LinksDir: p.dir + "/links", DirectoryDir: p.dir + "/directory", PlanDir: p.dir + "/plan", StateDir: p.dir + "/state",
		KeyFile: p.dir + "/key/key", HostsFile: p.dir + "/hosts", ResolvConf: p.dir + "/resolv.conf",
		HostNetNS: "/run/netns/" + p.c.name,
	}
}

// start starts the sidecar.
func (p *pod) start() {
	p.t.Helper()
	data, err := json.Marshal(p.config())
	if err != nil {
		p.t.Fatal(err)
	}
	if p.log == nil {
		if p.log, err = os.Create(filepath.Join(p.dir, "log")); err != nil {
			p.t.Fatal(err)
		}
	}
	p.cmd = p.spawn(podEnv + "=" + string(data))
	if p.helper == nil {
		p.helper = p.spawn(helperEnv + "=" + p.holdSocket())
	}
}

// holdSocket is where the supervisor and helpers exchange the namespace.
func (p *pod) holdSocket() string {
	return filepath.Join(p.dir, "state", contract.ExecDir, p.name, contract.HoldSocket)
}

// spawn runs the test binary as one of the Pod's processes.
func (p *pod) spawn(env string) *exec.Cmd {
	p.t.Helper()
	cmd := exec.Command("ip", "netns", "exec", p.ns, os.Args[0])
	cmd.Env = append(os.Environ(), env)
	cmd.Stderr = p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUTS}
	if _, err := cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return cmd
}

// kill ends the sidecar's container: the supervisor, and the sidecar with it.
func (p *pod) kill() { p.cmd = endOf(p.cmd) }

func endOf(cmd *exec.Cmd) *exec.Cmd {
	if cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return nil
}

// child is the process id of the sidecar that the supervisor runs.
func (p *pod) child() int {
	p.t.Helper()
	pid := 0
	eventually(p.t, p.name+"'s sidecar runs", func() error {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
		if err != nil {
			return err
		}
		for _, f := range files {
			data, _ := os.ReadFile(f)
			if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
				pid = n
				return nil
			}
		}
		return errors.New("it does not")
	})
	return pid
}

// own is the name of the sidecar's network namespace, which the name keeps alive.
func (p *pod) own() string {
	p.t.Helper()
	name := p.ns + "o"
	if _, err := os.Stat("/run/netns/" + name); err == nil {
		return name
	}
	p.c.ip("netns", "attach", name, strconv.Itoa(p.child()))
	return name
}

// inOwn runs a command line in the sidecar's namespace.
func (p *pod) inOwn(line string) string { p.t.Helper(); return inNS(p.t, p.own(), line) }

// unplug ends the Pod's processes and namespaces, as a Pod's end does.
func (p *pod) unplug() {
	p.end()
	run("ip", "netns", "del", p.ns)
}

// end ends the Pod's processes, and the sidecar's namespace with them.
func (p *pod) end() {
	p.kill()
	p.helper = endOf(p.helper)
	run("ip", "netns", "del", p.ns+"o")
}

// forgetState empties the shared folder, as another Pod has its own.
func (p *pod) forgetState() {
	p.t.Helper()
	if err := errors.Join(os.RemoveAll(p.dir+"/state"), os.MkdirAll(p.dir+"/state/exec/"+p.name, 0o755)); err != nil {
		p.t.Fatal(err)
	}
}

func (c *cluster) podNamed(name string) *pod {
	for _, p := range c.pods {
		if p.name == name {
			return p
		}
	}
	c.t.Fatalf("there is no Pod %s", name)
	return nil
}

func (p *pod) remove() {
	p.unplug()
	data, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	if strings.Contains(string(data), "DATA RACE") {
		p.t.Error("the race detector found something")
	}
	if p.t.Failed() {
		p.t.Logf("log of %s:\n%s", p.name, data)
	}
}

// get asks the sidecar from the cluster, as the kubelet does. Where there is no
// answer in time, it asks again.
func (p *pod) get(path string) (code int, body []byte, err error) {
	for end := time.Now().Add(sure); ; {
		code, body, err = p.getOnce(path)
		if !os.IsTimeout(err) || time.Now().After(end) {
			return code, body, err
		}
	}
}

func (p *pod) getOnce(path string) (int, []byte, error) {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialIn(p.c.name)}}
	resp, err := client.Get("http://" + p.ip4 + ":14802" + path)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := readAll(resp.Body)
	return resp.StatusCode, body, err
}

func (p *pod) status() (api.Status, error) {
	var s api.Status
	_, body, err := p.get(api.PathStatus)
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	return s, err
}

// waitStarted waits for the startup probe.
func (p *pod) waitStarted() {
	p.t.Helper()
	eventually(p.t, p.name+" starts", func() error {
		code, body, err := p.get(api.PathStartup)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
}

// waitMode waits until the Pod's one wire is up in a mode.
func (p *pod) waitMode(mode string) {
	p.t.Helper()
	eventually(p.t, p.name+"'s wire is up and "+mode, func() error {
		s, err := p.status()
		if err == nil && (s.Fabric.Mode != mode || len(s.Fabric.Wires) != 1 || !s.Fabric.Wires[0].Up) {
			err = fmt.Errorf("%+v", s.Fabric)
		}
		return err
	})
}

const (
	// patience is how long a test waits for what is to happen.
	patience = time.Minute
	// sure is how long it asks until it takes it that there is no answer.
	sure = 30 * time.Second
)

// eventually repeats a check until it passes. Nothing in these tests depends on
// how fast that is.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// withNS runs f on a thread in the namespace. Sockets that f makes stay there;
// goroutines that it starts do not.
func withNS(name string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		// The thread ends with the goroutine: it is never let go.
		runtime.LockOSThread()
		ns, err := netns.GetFromName(name)
		if err != nil {
			done <- err
			return
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}
