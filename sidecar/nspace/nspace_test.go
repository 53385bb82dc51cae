package nspace

import (
	"net"
	"os"
	"testing"
)

func TestNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	here, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	n, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	inside := false
	if err := n.Do(func() error { inside = n.Here(); return nil }); err != nil || !inside || n.Here() || !here.Here() {
		t.Errorf("a job is here: %v, this thread: %v; %v", inside, n.Here(), err)
	}
	a, errA := here.Cookie()
	b, errB := n.Cookie()
	if errA != nil || errB != nil || a == 0 || a == b {
		t.Errorf("cookies %d and %d: %v %v", a, b, errA, errB)
	}
	err = n.Do(func() error {
		all, err := net.Interfaces()
		if err == nil && (len(all) != 1 || all[0].Name != "lo") {
			t.Errorf("a new namespace has %v", all)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// What a stranger passes for a namespace is refused unless it is one.
func TestOpenRefuses(t *testing.T) {
	for _, path := range []string{"/dev/null", "/", "/proc/self/ns/uts", "/proc/self/ns/mnt"} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := Open(f); err == nil {
			n.Close()
			t.Errorf("%s was taken for a network namespace", path)
		}
	}
}
