package hosts

import (
	"errors"
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

// TestHostileBlock has blocks that would be more than names: what a line of another form
// does, it does in every pass.
func TestHostileBlock(t *testing.T) {
	const kubelet = "127.0.0.1\tlocalhost\n"
	for _, c := range []struct{ name, block, want string }{
		{"ends early", "10.0.0.1\ta\n" + end + "\n6.6.6.6\tregistry\n", "10.0.0.1\ta\n6.6.6.6\tregistry\n"},
		{"begins again", "10.0.0.1\ta\n" + begin + "\n10.0.0.2\tb\n", "10.0.0.1\ta\n10.0.0.2\tb\n"},
		{"no address", "10.0.0.1\ta\nregistry 6.6.6.6\n", "10.0.0.1\ta\n"},
		{"no name", "10.0.0.1\n10.0.0.1\t#\n", ""},
		{"escape", "10.0.0.1\ta\x1b[2J\n10.0.0.2\tb\n", "10.0.0.2\tb\n"},
		{"carriage return", "10.0.0.1\ta\r6.6.6.6 b\n", ""},
		{"zone", "fe80::1%eth0\ta\n", ""},
	} {
		want := kubelet
		if c.want != "" {
			want += begin + "\n" + c.want + end + "\n"
		}
		text := []byte(kubelet)
		for range 3 {
			text = With(text, []byte(c.block))
		}
		if string(text) != want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, text, want)
		}
	}
}

// FuzzWith holds that a second pass changes nothing, and that what is not the block's
// stays.
func FuzzWith(f *testing.F) {
	f.Add("127.0.0.1\tlocalhost\n", "10.0.0.1\ta b\n")
	f.Add(begin+"\nx\n"+end+"\n", end+"\n10.0.0.1 a")
	f.Add("no newline", begin)
	f.Fuzz(func(t *testing.T, old, block string) {
		once := With([]byte(old), []byte(block))
		if twice := With(once, []byte(block)); string(twice) != string(once) {
			t.Errorf("With(%q, %q) is %q, and again %q", old, block, once, twice)
		}
	})
}

func TestUpdateLeavesAHugeFileAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil { // sparse
		t.Fatal(err)
	}
	if err := Update(path, []byte("10.0.0.1 a\n")); err == nil {
		t.Error("a file of 1 TiB was read")
	}
}
