package link

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// What is shown of a bridge is what bridge(8) shows of it.
func TestShowBridge(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	if _, err := exec.LookPath("bridge"); err != nil {
		t.Skip("needs the ip and bridge programs of iproute2")
	}
	name := fmt.Sprintf("c9sb%d", os.Getpid())
	run := func(line string) string {
		t.Helper()
		words := strings.Fields(line)
		out, err := exec.Command(words[0], words[1:]...).Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		return string(out)
	}
	run("ip netns add " + name)
	t.Cleanup(func() { run("ip netns del " + name) })
	inNS := "ip netns exec " + name + " "
	objects := map[string]string{"fdb": "show br br1", "link": "show master br1", "mdb": "show dev br1"}
	lines := []string{
		"ip link add br2 type bridge", "ip link add port1 type veth peer name end1", "ip link add port2 type veth peer name end2", "ip link add port3 type veth peer name end3",
		"ip link set port1 master br1 up", "ip link set port2 master br1", "ip link set port3 master br2 up", "ip link set end1 up", "ip link set br1 up",
		"bridge fdb add 02:00:00:00:00:01 dev port1 master static", "bridge fdb add 02:00:00:00:00:02 dev port1 master dynamic",
		"bridge mdb add dev br1 port port1 grp 239.1.1.1 permanent", "bridge mdb add dev br1 port port1 grp ff05::1 permanent",
	}
	const make = "ip link add br1 type bridge mcast_snooping 1 forward_delay 0"
	words := strings.Fields(inNS + make + " vlan_filtering 1")
	if exec.Command(words[0], words[1:]...).Run() == nil {
		objects["vlan"] = "show"
		lines = append(lines, "bridge vlan add dev port1 vid 10", "bridge vlan add dev port2 vid 20 pvid untagged", "bridge vlan add dev br1 vid 10 self")
	} else {
		t.Log("the kernel's bridges have no VLANs")
		run(inNS + make)
	}
	for _, line := range lines {
		run(inNS + line)
	}
	f, err := os.Open("/run/netns/" + name)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := nspace.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	show := func(node, object string) (text string, err error) {
		err = ns.Do(func() (err error) { text, err = ShowBridge(node, object); return err })
		return text, err
	}
	for object, args := range objects {
		got, err := show("br1", object)
		if err != nil {
			t.Error(err)
		}
		want := run(inNS + "bridge " + object + " " + args)
		if a, b := plainBridge(got), plainBridge(want); !slices.Equal(a, b) || len(a) == 0 {
			t.Errorf("bridge %s shows\n%s\nand iproute2\n%s", object, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
	for _, c := range [][2]string{{"br1", "monitor"}, {"port1", "fdb"}, {"nothing", "fdb"}} {
		if text, err := show(c[0], c[1]); err == nil {
			t.Errorf("bridge %s of %s shows %s", c[1], c[0], text)
		}
	}
}

// plainBridge are the lines of bridge(8) but for what differs between its versions, and
// for other bridges.
func plainBridge(text string) (out []string) {
	skip := false
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if !strings.HasPrefix(line, " ") {
			skip = strings.Contains(line, "br2") || strings.Contains(line, "port3")
		}
		if skip || words[0] == "33:33:00:00:00:01" || words[0] == "01:00:5e:00:00:01" || strings.HasPrefix(words[0], "33:33:") {
			continue
		}
		words = slices.DeleteFunc(words, func(w string) bool { return w == "extern_learn" || w == "offload" })
		for i, w := range words {
			words[i], _, _ = strings.Cut(w, "@")
			words[i] = strings.Replace(strings.TrimSuffix(words[i], ":"), ",M-DOWN", "", 1)
		}
		out = append(out, strings.Join(words, " "))
	}
	slices.Sort(out)
	return out
}
