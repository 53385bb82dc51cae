package inside

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The test program is the helper when it is called so.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "as" {
		err := As(os.Args[2:])
		var exit *ExitError
		if errors.As(err, &exit) {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(exit.Code)
		}
		if err != nil {
			os.Exit(2)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestAs(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	root := os.Getuid() == 0
	for _, c := range []struct {
		args []string
		root bool
		out  string
		code int
	}{
		{args: []string{"--env", "A=1", "--env", "B=x=y", "sh", "-c", "echo $A $B"}, out: "1 x=y\n"},
		{args: []string{"--env", "A", "sh", "-c", "exit 7"}, code: 7},
		{args: []string{"--dir", dir, "pwd"}, out: dir + "\n"},
		{args: []string{"--dir", dir + "/missing", "pwd"}, out: "working directory: chdir " + dir + "/missing: no such file or directory\n", code: 127},
		{args: []string{"no-such-program"}, out: "there is no program \"no-such-program\"\n", code: 127},
		{args: []string{plain}, out: fmt.Sprintf("%q is not an executable program\n", plain), code: 126},
		{args: []string{"--user", "nobody-at-all", "id"}, out: "unable to find user nobody-at-all: no matching entries in passwd file\n", code: 126},
		{args: []string{"--user", "1234:55", "sh", "-c", "id -u; id -g; id -G"}, root: true, out: "1234\n55\n55\n"},
		{args: []string{"--user", "nobody", "sh", "-c", "id -un; echo $HOME"}, root: true, out: "nobody\n/nonexistent\n"},
		{args: []string{"--user", "0", "id", "-u"}, root: true, out: "0\n"},
		{args: nil, code: 2},
	} {
		if c.root && !root {
			t.Log("needs root:", c.args)
			continue
		}
		out, err := exec.Command(os.Args[0], append([]string{"as"}, c.args...)...).CombinedOutput()
		code := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		if code != c.code || string(out) != c.out && c.code != 2 {
			t.Errorf("%q: exit code %d, %q; want %d, %q", c.args, code, out, c.code, c.out)
		}
	}
}

// A detached command goes on when the helper has ended.
func TestDetach(t *testing.T) {
	file := filepath.Join(t.TempDir(), "done")
	out, err := exec.Command(os.Args[0], "as", "--detach", "sh", "-c", "sleep 0.2; echo $PPID > "+file+".new; mv "+file+".new "+file).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatal("the command has not run")
		}
	}
}

func TestFiles(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "f"), []byte("text"), 0o640); err != nil {
		t.Fatal(err)
	}
	var stream, complaints, out bytes.Buffer
	if err := Pack([]string{"--name", "f", filepath.Join(from, "f")}, &stream, &complaints); err != nil || complaints.Len() > 0 {
		t.Fatal(err, complaints.String())
	}
	if err := Unpack([]string{to}, &stream, &out); err != nil || strings.TrimSpace(out.String()) != `{"files":1,"bytes":4}` {
		t.Fatalf("%v: %s", err, out.String())
	}
	if data, err := os.ReadFile(filepath.Join(to, "f")); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
	for _, args := range [][]string{nil, {"a", "b"}, {"--no-such", "a"}} {
		if err := Unpack(args, &stream, &out); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: %v", slices.Clone(args), err)
		}
		if err := Pack(args, &stream, &complaints); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
