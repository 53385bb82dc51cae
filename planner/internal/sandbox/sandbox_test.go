package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/planner/internal/sandbox"
)

// TestMain is the program in the sandbox when its first argument is "probe": it
// tells what it sees there.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		os.Exit(probe())
	}
	os.Exit(m.Run())
}

func probe() int {
	if !sandbox.Inside() {
		code, err := sandbox.Enter()
		if err != nil {
			fmt.Println(err)
			return 1
		}
		return code
	}
	if err := sandbox.Prepare(); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := sandbox.DropCapabilities(); err != nil {
		fmt.Println(err)
		return 1
	}
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") {
			fmt.Println(strings.Join(strings.Fields(line), " "))
		}
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, i := range interfaces {
		fmt.Println("interface", i.Name)
	}
	if _, err := net.Dial("udp", "192.0.2.1:53"); err != nil {
		fmt.Println("no route")
	}
	if err := os.WriteFile("/proc/sys/kernel/hostname", []byte("changed"), 0o644); err == nil {
		fmt.Println("renamed its own host")
	}
	return 3
}

// TestSandbox: the program sees a loopback and the pair that hooks look for, and
// reaches nothing; its exit code comes through.
func TestSandbox(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "probe")
	cmd.Env = []string{}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, want := range []string{"interface lo", "interface eth0", "interface mp0", "no route",
		// chown, fowner, fsetid and, in its own namespaces, sys_admin and net_admin are left, and nothing gives more
		"CapPrm: 0000000000201019", "CapEff: 0000000000201019", "CapBnd: 0000000000201019", "CapInh: 0000000000000000", "NoNewPrivs: 1"} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %q:\n%s", want, out)
		}
	}
	if n := strings.Count(string(out), "interface "); n != 3 {
		t.Errorf("%d interfaces:\n%s", n, out)
	}
	if after, err := os.Hostname(); err != nil || after != before {
		t.Errorf("the host is called %q now: %v", after, err)
	}
}
