package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// looked is a lab of two nodes on different workers, for commands that show what it does.
func looked(t *testing.T, name string) *lab {
	t.Helper()
	l := written(t, name, map[string]string{"lab.clab.yml": `name: ` + name + `
topology:
  defaults: {kind: linux, image: 'ghcr.io/srl-labs/network-multitool:latest'}
  nodes:
    A: {exec: [ip addr add 10.0.0.1/24 dev eth1], env: {ADMIN_PASSWORD: Pl4nted-in-env}}
    B: {exec: [ip addr add 10.0.0.2/24 dev eth1]}
  links:
    - endpoints: ["A:eth1", "B:eth1"]
`})
	l.deploy(t)
	l.ready(t)
	return l
}

// TestCapture: tshark reads what both ends of a link saw, in the right order, with the names and
// the error of the clocks.
func TestCapture(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Fatal("tshark is not installed: apt-get install tshark")
	}
	l := looked(t, "captured")
	l.reaches(t, "A", "10.0.0.2")
	file := filepath.Join(t.TempDir(), "both.pcapng")
	done := make(chan string, 1)
	go func() {
		out, err := l.try(t.Context(), "capture", "--link", "A", "B", "--lab", l.name, "-n", l.ns, "--filter", "icmp", "-w", file, "--count", "40", "--for", "60s")
		done <- fmt.Sprintf("%v\n%s", err, out)
	}()
	var out string
	testcluster.Eventually(t, patience, "a capture of 40 frames", func() error {
		select {
		case out = <-done:
			return nil
		default:
			_, err := l.in(t.Context(), "A", "ping", "-c", "10", "-i", "0.05", "-W", "1", "10.0.0.2")
			return fmt.Errorf("it runs: %v", err)
		}
	})
	if !strings.HasPrefix(out, "<nil>") || !strings.Contains(out, "40 frames captured, 0 dropped") {
		t.Fatal(out)
	}
	read, err := exec.Command(tshark, "-r", file, "-T", "fields", "-e", "frame.interface_name", "-e", "frame.packet_flags_direction", "-e", "frame.time_epoch", "-e", "icmp.type", "-e", "icmp.seq", "-e", "icmp.checksum.status").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("tshark:\n%s", read)
	// The way of a ping: A sends the request, B receives it, B sends the reply, A receives it.
	way := []string{"A:eth1 2 8", "B:eth1 1 8", "B:eth1 2 0", "A:eth1 1 0"}
	seen := map[string][]string{}
	last := 0.0
	for line := range strings.Lines(string(read)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) < 6 || f[5] != "1" {
			t.Fatalf("tshark prints %q", line)
		}
		direction, _ := strconv.ParseInt(f[1], 0, 32)
		seen[f[4]] = append(seen[f[4]], fmt.Sprintf("%s %d %s", f[0], direction, f[3]))
		at, err := strconv.ParseFloat(f[2], 64)
		if err != nil || at < last {
			t.Errorf("%s: not in the order of times", line)
		}
		last = at
	}
	whole := 0
	for seq, got := range seen {
		if slices.Equal(got, way) {
			whole++
		} else {
			t.Logf("ping %s: %v", seq, got) // the first and the last may be cut
		}
	}
	if whole < 7 {
		t.Errorf("%d pings have their way", whole)
	}
	comments, err := exec.Command(tshark, "-r", file, "-c", "1", "-V").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	info, _ := exec.Command("capinfos", file).CombinedOutput()
	if text := string(comments) + string(info); !strings.Contains(text, "link A:eth1 - B:eth1") || !strings.Contains(text, "icmp") {
		t.Errorf("the file does not describe its interfaces:\n%s", text)
	}
	// As lines, and a wrong filter.
	printed := make(chan []byte, 1)
	go func() {
		out, _ := l.output(t, "capture", "B:eth1", "--lab", l.name, "-n", l.ns, "--filter", "icmp", "-o", "json", "--count", "1", "--for", "30s")
		printed <- out
	}()
	var lines []byte
	testcluster.Eventually(t, patience, "a line of a frame", func() error {
		select {
		case lines = <-printed:
			return nil
		default:
			_, err := l.in(t.Context(), "A", "ping", "-c", "5", "-i", "0.1", "-W", "1", "10.0.0.2")
			return fmt.Errorf("it runs: %v", err)
		}
	})
	var frame struct{ Interface, Peer, Direction, Summary string }
	if err := json.Unmarshal(lines, &frame); err != nil || frame.Interface != "B:eth1" || frame.Peer != "A:eth1" || !strings.Contains(frame.Summary, "10.0.0.1 > 10.0.0.2 ICMP EchoRequest") {
		t.Errorf("%v: %s", err, lines)
	}
	if out, err := l.try(t.Context(), "capture", "A:eth1", "--lab", l.name, "-n", l.ns, "--filter", "tcp[13]"); err == nil || !strings.Contains(out, "filter") {
		t.Errorf("a wrong filter: %v\n%s", err, out)
	}
	l.extcap(t, tshark)
	l.destroyed(t)
}

// extcap calls c9s as Wireshark does: it lists the link, and its frames come through a pipe.
func (l *lab) extcap(t *testing.T, tshark string) {
	t.Helper()
	dir := t.TempDir()
	l.c9s(t, "capture", "--install-extcap", "--extcap-dir", dir)
	wireshark := func(args ...string) *exec.Cmd {
		cmd := l.command(t.Context())
		cmd.Path = filepath.Join(dir, "c9s-extcap")
		cmd.Args = append([]string{cmd.Path}, args...)
		return cmd
	}
	list, err := wireshark("--extcap-interfaces", "--extcap-version=4.4").Output()
	name := "c9s:" + l.ns + "/" + l.name + "/A:eth1"
	if err != nil || !strings.Contains(string(list), "interface {value="+name+"}{display=c9s "+l.name+": A:eth1 - B:eth1}") {
		t.Fatalf("--extcap-interfaces: %v\n%s", err, list)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	capture := wireshark("--capture", "--extcap-interface", name, "--fifo", fifo, "--extcap-capture-filter", "icmp")
	if err := capture.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		out, err := exec.Command(tshark, "-r", fifo, "-c", "20", "-T", "fields", "-e", "frame.interface_name", "-e", "icmp.type").Output()
		read <- fmt.Sprintf("%v\n%s", err, out)
	}()
	var out string
	testcluster.Eventually(t, patience, "20 frames through the pipe", func() error {
		select {
		case out = <-read:
			return nil
		default:
			_, err := l.in(t.Context(), "A", "ping", "-c", "5", "-i", "0.1", "-W", "1", "10.0.0.2")
			return fmt.Errorf("it runs: %v", err)
		}
	})
	// The first ping may be cut: the two Pods do not begin at the same moment.
	if !strings.HasPrefix(out, "<nil>") || !strings.Contains(out, "A:eth1\t8\nB:eth1\t8\nB:eth1\t0\nA:eth1\t0\n") {
		t.Errorf("tshark reads %s", out)
	}
	_ = capture.Process.Signal(syscall.SIGTERM) // as Wireshark ends it
	_ = capture.Wait()
}

// TestGraphLive: the page shows the running lab, follows it, and answers to this machine only.
func TestGraphLive(t *testing.T) {
	l := looked(t, "drawn")
	type graph struct {
		State string
		Nodes []struct {
			Name string
			Live struct{ State, Worker string }
		}
		Links []struct {
			Live struct {
				State      string
				Carrier    []string
				Rate       []float64
				Impairment []string
			}
		}
	}
	var g graph
	out, err := l.output(t, "graph", l.name, "-n", l.ns, "--live", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &g); err != nil {
		t.Fatal(err)
	}
	if g.State != "ready" || len(g.Nodes) != 2 || g.Nodes[0].Live.State != "ready" || g.Nodes[0].Live.Worker == "" || len(g.Links) != 1 || !slices.Equal(g.Links[0].Live.Carrier, []string{"up", "up"}) || len(g.Links[0].Live.Rate) != 2 {
		t.Errorf("graph --live -o json:\n%s", out)
	}
	cmd := l.command(t.Context(), "graph", l.name, "-n", l.ns, "--live", "--print")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("%q, %v", url, err)
	}
	url = strings.TrimSpace(url)
	request, _ := http.NewRequest("GET", url, nil)
	request.Host = "attacker.example"
	if resp, err := http.DefaultClient.Do(request); err != nil || resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a request for another host: %v, %v", resp, err)
	}
	resp, err := http.Get(url + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stop := time.AfterFunc(patience, func() { resp.Body.Close() })
	defer stop.Stop()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	next := func(what string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("the stream ends before %q", what)
	}
	next(`"state":"ready"`)
	l.c9s(t, "link", "set", "A:eth1", "--delay", "30ms", "--lab", l.name, "-n", l.ns)
	began := time.Now()
	next(`"delay 30ms"`)
	t.Logf("the page has the delay after %s", time.Since(began).Round(10*time.Millisecond))
	ping := l.command(t.Context(), "exec", "A", "-n", l.ns, "--", "ping", "-q", "-c", "100", "-i", "0.1", "-s", "1400", "10.0.0.2")
	if err := ping.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ping.Wait() }()
	testcluster.Eventually(t, patience, "the rate of a ping", func() error {
		lines.Scan()
		_, after, ok := strings.Cut(lines.Text(), `"rate":[`)
		rate, _, _ := strings.Cut(after, ",")
		if v, err := strconv.ParseFloat(rate, 64); !ok || err != nil || v < 50_000 {
			return fmt.Errorf("the rate is %q", rate)
		}
		return nil
	})
	l.destroyed(t)
}

// TestTopAndSupport: top measures nodes and links, and the archive of support has what it should
// and none of the secrets that were planted.
func TestTopAndSupport(t *testing.T) {
	l := looked(t, "measured")
	l.reaches(t, "A", "10.0.0.2")
	ping := l.command(t.Context(), "exec", "A", "-n", l.ns, "--", "ping", "-q", "-c", "150", "-i", "0.1", "-s", "1400", "10.0.0.2")
	if err := ping.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ping.Wait() }()
	type top struct {
		Nodes []struct {
			Name, State string
			CPUMilli    *float64
			MemoryBytes *uint64
		}
		Links []struct {
			A, B         string
			RateA, RateB *float64
		}
	}
	testcluster.Eventually(t, patience, "rates and memory", func() error {
		out, err := l.output(t, "top", l.name, "-n", l.ns, "-o", "json")
		if err != nil {
			return err
		}
		var m top
		if err := json.Unmarshal(out, &m); err != nil {
			return err
		}
		switch {
		case len(m.Nodes) != 2 || len(m.Links) != 1 || m.Links[0].A != "A:eth1" || m.Links[0].B != "B:eth1":
			return fmt.Errorf("top prints %s", out)
		case m.Nodes[0].MemoryBytes == nil || *m.Nodes[0].MemoryBytes == 0 || m.Nodes[0].CPUMilli == nil:
			return fmt.Errorf("no memory: %s", out)
		case m.Links[0].RateA == nil || *m.Links[0].RateA < 50_000 || *m.Links[0].RateB < 50_000:
			return fmt.Errorf("no rates: %s", out)
		}
		return nil
	})
	if out := l.c9s(t, "top", l.name, "-n", l.ns, "--sort", "rate"); !strings.Contains(out, "A:eth1") || !strings.Contains(out, "bit/s") {
		t.Errorf("top:\n%s", out)
	}
	archive := filepath.Join(t.TempDir(), "report.tar.gz")
	l.c9s(t, "support", l.name, "-n", l.ns, "-f", archive, "--device-logs")
	names, err := exec.Command("tar", "-tzf", archive).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"versions.json", "status.json", "doctor.json", "events.txt", "objects/deployments/a.yaml", "-wire.log"} {
		if !strings.Contains(string(names), want) {
			t.Errorf("the archive lacks %s:\n%s", want, names)
		}
	}
	texts, err := exec.Command("tar", "-xzOf", archive).Output()
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.Index(string(texts), "Pl4nted-in-env"); i >= 0 {
		t.Errorf("the archive has the planted secret: ...%s...", texts[max(0, i-300):min(len(texts), i+100)])
	}
	l.destroyed(t)
}
