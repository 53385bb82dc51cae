package podnet

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestIdle measures the sidecar of a Pod with 8 wires that carry nothing. SIDECAR_IDLE is
// for how long (time.ParseDuration).
func TestIdle(t *testing.T) {
	text := os.Getenv("SIDECAR_IDLE")
	if text == "" {
		t.Skip("measures for as long as SIDECAR_IDLE says")
	}
	lasts, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	const wires = 8
	for n, name := range []string{"r1", "r2"} {
		doc := mgmtDoc(11 + n)
		for i := 1; i <= wires; i++ {
			w := wired(iface(name, fmt.Sprintf("eth%d", i), 10*i+n), i, []string{"r2", "r1"}[n])
			w.IPv4 = netip.Prefix{}
			doc.Interfaces = append(doc.Interfaces, w)
		}
		c.newPod(name, doc)
	}
	c.startAll()
	p := c.pods[0]
	eventually(t, "ready", p.ready)
	time.Sleep(lasts / 4) // what comes after a start
	pids := processes(p.cmd.Process.Pid)
	if len(pids) == 0 {
		t.Fatal("the sidecar has no process")
	}
	began, before := time.Now(), ticks(pids)
	time.Sleep(lasts)
	used := float64(ticks(pids)-before) / 100 / time.Since(began).Seconds()
	resident, shared := 0, 0
	for _, pid := range pids {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 1 && (f[0] == "RssAnon:" || f[0] == "RssFile:") {
				n, _ := strconv.Atoi(f[1])
				if f[0] == "RssAnon:" {
					resident += n
				} else {
					shared = max(shared, n) // the program's own pages
				}
			}
		}
	}
	t.Logf("idle with %d wires: %d processes, %.2f mCPU, %.1f MiB of memory and %.1f MiB of its program", wires, len(pids), used*1000, float64(resident)/1024, float64(shared)/1024)
}

// processes are a process and its descendants.
func processes(pid int) []int {
	out := []int{pid}
	data, _ := os.ReadDir("/proc")
	for _, e := range data {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			out = append(out, processes(child)...)
		}
	}
	return out
}

// ticks is the processor time of processes, in hundredths of a second (proc_pid_stat(5)).
func ticks(pids []int) int {
	sum := 0
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(rest)
		for _, i := range []int{11, 12} {
			n, _ := strconv.Atoi(f[i])
			sum += n
		}
	}
	return sum
}
