package save

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// answer is what a command of a test prints and how it ends.
type answer struct {
	out, err string
	code     int
	fail     error
}

// device answers commands by their text, and records them.
type device struct {
	answers map[string]answer
	input   string
}

func (d *device) exec(_ context.Context, argv []string, in io.Reader, out, errOut io.Writer) (int, error) {
	if in != nil {
		text, _ := io.ReadAll(in)
		d.input = string(text)
	}
	a, ok := d.answers[strings.Join(argv, " ")]
	if !ok {
		return 127, fmt.Errorf("unexpected command %q", argv)
	}
	io.WriteString(out, a.out)
	io.WriteString(errOut, a.err)
	return a.code, a.fail
}

func TestConfig(t *testing.T) {
	defer func(limit int) { maxConfig = limit }(maxConfig)
	maxConfig = 1000
	cli := &kinds.Save{Argv: []string{"cli"}}
	shell := &kinds.Save{Argv: []string{"cli"}, Probe: []string{"sh", "-c", "look"}, Without: "it has no cli"}
	const joined = `sh -c sh -c "$0" </dev/null >/dev/null 2>&1 || exit 213; exec "$@" look cli`
	for _, tt := range []struct {
		name    string
		rule    *kinds.Save
		answers map[string]answer
		want    string
		wantErr string
	}{
		{"output", cli, map[string]answer{"cli": {out: "hostname r1\n"}}, "hostname r1\n", ""},
		{"lines of a terminal", cli, map[string]answer{"cli": {out: "a\r\nb\r\n"}}, "a\nb\n", ""},
		{"binary", &kinds.Save{Argv: []string{"cli"}, Binary: true}, map[string]answer{"cli": {out: "a\r\nb"}}, "a\r\nb", ""},
		{"a file", &kinds.Save{Argv: []string{"cli"}, Fetch: "/c/x"}, map[string]answer{"cli": {out: "saved"}, "cat /c/x": {out: "{}"}}, "{}", ""},
		{"no file", &kinds.Save{Argv: []string{"cli"}, Fetch: "/c/x"}, map[string]answer{"cli": {}, "cat /c/x": {code: 1, err: "cat: no such file"}}, "", "cat failed with exit code 1: cat: no such file"},
		{"failure", cli, map[string]answer{"cli": {out: "not saved", code: 3}}, "", "cli failed with exit code 3: not saved"},
		{"standard error", cli, map[string]answer{"cli": {out: "x", err: "a warning"}}, "x", ""},
		{"standard error of a strict command", &kinds.Save{Argv: []string{"cli"}, Strict: true}, map[string]answer{"cli": {out: "x", err: "Error:\n locked"}}, "", "cli reported an error: Error: locked"},
		{"nothing", cli, map[string]answer{"cli": {out: " \n"}}, "", "the configuration is empty"},
		{"a lost connection", cli, map[string]answer{"cli": {out: "half", fail: errors.New("the Pod is gone")}}, "", "the Pod is gone"},
		{"no rule", nil, nil, "", "unsupported: kind acme has no rule for saving"},
		{"not this one", &kinds.Save{Argv: []string{"cli"}, Probe: []string{"look"}, Without: "it has no cli"}, map[string]answer{"look": {code: 1}}, "", "unsupported: it has no cli"},
		{"this one", &kinds.Save{Argv: []string{"cli"}, Probe: []string{"look"}, Without: "it has no cli"}, map[string]answer{"look": {}, "cli": {out: "x"}}, "x", ""},
		{"a probe in the same process", shell, map[string]answer{joined: {out: "x"}}, "x", ""},
		{"its probe fails", shell, map[string]answer{joined: {code: 213}}, "", "unsupported: it has no cli"},
		{"its command fails", shell, map[string]answer{joined: {code: 1, err: "no"}}, "", "cli failed with exit code 1: no"},
		{"lines that are left out", &kinds.Save{Argv: []string{"cli"}, Drop: []string{"^Building"}}, map[string]answer{"cli": {out: "Building configuration...\r\nhostname r1\r\n"}}, "hostname r1\n", ""},
		{"only a file", &kinds.Save{Fetch: "/c/x"}, map[string]answer{"cat /c/x": {out: "x"}}, "x", ""},
		{"too much", cli, map[string]answer{"cli": {out: strings.Repeat("x", 1001)}}, "", "the configuration has more than 1000 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Config(t.Context(), &kinds.Kind{Name: "acme", Save: tt.rule}, Device{Exec: (&device{answers: tt.answers}).exec})
			if string(got) != tt.want || fmt.Sprint(err) != map[bool]string{true: "<nil>", false: tt.wantErr}[tt.wantErr == ""] {
				t.Errorf("%q, %v; want %q, %s", got, err, tt.want, tt.wantErr)
			}
			if unsupported := strings.HasPrefix(tt.wantErr, "unsupported"); errors.Is(err, ErrUnsupported) != unsupported {
				t.Errorf("unsupported: %v", !unsupported)
			}
		})
	}
}

// TestLate: a command that was given up may still write.
func TestLate(t *testing.T) {
	begun, done := make(chan struct{}), make(chan struct{})
	late := func(_ context.Context, _ []string, _ io.Reader, out, errOut io.Writer) (int, error) {
		go func() {
			defer close(done)
			for i := range 1000 {
				io.WriteString(out, "x")
				io.WriteString(errOut, "x")
				if i == 0 {
					close(begun)
				}
			}
		}()
		<-begun
		return 0, context.DeadlineExceeded
	}
	if got, err := Config(t.Context(), &kinds.Kind{Save: &kinds.Save{Argv: []string{"cli"}}}, Device{Exec: late}); got != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%q, %v", got, err)
	}
	<-done
}

// TestInput: the command gets its lines at standard input.
func TestInput(t *testing.T) {
	d := &device{answers: map[string]answer{"cli": {out: "x"}}}
	if _, err := Config(t.Context(), &kinds.Kind{Save: &kinds.Save{Argv: []string{"cli"}, Input: "show\n"}}, Device{Exec: d.exec}); err != nil || d.input != "show\n" {
		t.Errorf("%q, %v", d.input, err)
	}
}

func TestStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "configs", "r1.conf")
	for _, tt := range []struct {
		config  string
		changed bool
	}{{"a", true}, {"a", false}, {"b", true}} {
		changed, err := Store(file, []byte(tt.config))
		if err != nil || changed != tt.changed {
			t.Errorf("%q: changed %v, %v", tt.config, changed, err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != tt.config {
			t.Errorf("%q, %v; want %q", got, err, tt.config)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: passwords are in it", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(file)); len(entries) != 1 {
		t.Errorf("%d files are left", len(entries))
	}
	if _, err := Store(filepath.Join(file, "below"), []byte("x")); err == nil {
		t.Error("a file is taken as a folder")
	}
}
