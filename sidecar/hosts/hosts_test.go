package hosts

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWith(t *testing.T) {
	const kubelet = "127.0.0.1\tlocalhost\n10.0.0.7\tr1-abc\n"
	const block = begin + "\n172.20.20.2\tr1\n" + end + "\n"
	for _, c := range []struct{ name, old, block, want string }{
		{"first", kubelet, "172.20.20.2\tr1\n", kubelet + block},
		{"again", kubelet + block, "172.20.20.2\tr1", kubelet + block},
		{"changed", kubelet + begin + "\nold\n" + end + "\n", "172.20.20.2\tr1\n", kubelet + block},
		{"device's line after it", kubelet + block + "1.2.3.4 x\n", "172.20.20.2\tr1\n", kubelet + "1.2.3.4 x\n" + block},
		{"no newline at the end", "127.0.0.1 localhost", "172.20.20.2\tr1\n", "127.0.0.1 localhost\n" + block},
		{"cut off", kubelet + begin + "\n172.2", "172.20.20.2\tr1\n", kubelet + block},
		{"nothing to say", kubelet + block, "", kubelet},
		{"empty", "", "172.20.20.2\tr1\n", block},
	} {
		if got := string(With([]byte(c.old), []byte(c.block))); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

func TestUpdateKeepsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(path)
	for _, block := range []string{"10.0.0.1 a\n10.0.0.2 b\n", "10.0.0.1 a\n"} {
		if err := Update(path, []byte(block)); err != nil {
			t.Fatal(err)
		}
	}
	after, _ := os.Stat(path)
	if !os.SameFile(before, after) {
		t.Error("the file was replaced; a bind mount would still show the old one")
	}
	got, _ := os.ReadFile(path)
	if want := "127.0.0.1 localhost\n" + begin + "\n10.0.0.1 a\n" + end + "\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
