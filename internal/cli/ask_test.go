//go:build !nocluster && linux

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/render"
)

func TestAsk(t *testing.T) {
	for answer, want := range map[string]string{
		"y\n": "yes", "Yes \n": "yes", "n\n": "no", "\n": "no", "yes please\n": "no", "": "none", "y": "none",
	} {
		var out bytes.Buffer
		ok, err := ask(t.Context(), strings.NewReader(answer), &out, "Go on?")
		got := map[bool]string{true: "yes", false: "no"}[ok]
		if err != nil {
			got = "none"
		}
		if got != want {
			t.Errorf("%q is %s, want %s", answer, got, want)
		}
		if !strings.HasPrefix(out.String(), "Go on? [y/N] ") {
			t.Errorf("%q: says %q", answer, out.String())
		}
	}
}

// Ctrl-C at a question ends it, whatever the terminal does.
func TestAskInterrupted(t *testing.T) {
	silent, keyboard := io.Pipe()
	defer keyboard.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, interrupt)
	ok, err := ask(ctx, silent, io.Discard, "Go on?")
	if ok || err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("an interrupted question: %t, %v", ok, err)
	}
}

// A question takes one line, and leaves the next to the next question.
func TestAskTwice(t *testing.T) {
	in := strings.NewReader("y\nn\n")
	for i, want := range []bool{true, false} {
		if got, err := ask(t.Context(), in, io.Discard, "Go on?"); got != want || err != nil {
			t.Errorf("question %d: %t, %v", i+1, got, err)
		}
	}
}

// Where nobody can answer, a question is an error that names the flag.
func TestNoTerminal(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, in := range map[string]io.Reader{"a pipe that says no": strings.NewReader("n\n"), "a pipe that says yes": strings.NewReader("y\n"), "/dev/null": file, "nothing": nil} {
		var out bytes.Buffer
		code := Main([]string{"destroy", "mylab"}, IO{In: in, Out: io.Discard, Err: &out})
		if code != ExitUsage || !strings.Contains(out.String(), "--yes") || !strings.Contains(out.String(), "not a terminal") {
			t.Errorf("%s: exit code %d, %s", name, code, out.String())
		}
	}
}

// Deploy stops no device, deletes no object and changes no namespace without an answer.
func TestDeployAsks(t *testing.T) {
	recreate := cluster.Diff{Nodes: []cluster.NodeDiff{{Nodes: []string{"r1"}, Action: cluster.ActionRecreate}}}
	prune := cluster.Diff{Prune: []cluster.Prune{{Object: "Service/r2"}}}
	data := cluster.Diff{Prune: []cluster.Prune{{Object: "PersistentVolumeClaim/r2", Data: true}}}
	none := cluster.Diff{Nodes: []cluster.NodeDiff{{Nodes: []string{"r1"}, Action: cluster.ActionLive}}}
	const asks = "not a terminal"
	for _, c := range []struct {
		name  string
		flags deployFlags
		diff  cluster.Diff
		want  string
		prune int
	}{
		{"a device stops", deployFlags{}, recreate, asks, 0},
		{"a device stops, --yes", deployFlags{yes: true}, recreate, "", 0},
		{"an object goes", deployFlags{}, prune, asks, 0},
		{"an object goes, --yes", deployFlags{yes: true}, prune, "", 1},
		{"data", deployFlags{}, data, asks, 0},
		{"data, --yes", deployFlags{yes: true}, data, "", 0},
		{"data, --delete-data", deployFlags{deleteData: true}, data, "", 1},
		{"nothing stops", deployFlags{}, none, "", 0},
	} {
		d, err := c.flags.agreeTo(t.Context(), IO{In: strings.NewReader("y\n"), Err: io.Discard}, c.diff)
		if (err == nil) != (c.want == "") || err != nil && !(strings.Contains(err.Error(), c.want) && strings.Contains(err.Error(), "--yes")) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil && len(d.Prune) != c.prune {
			t.Errorf("%s: %d objects are deleted, want %d", c.name, len(d.Prune), c.prune)
		}
	}
	object := manifest.Object{Object: &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "demo"}}}
	if err := object.Encode(); err != nil {
		t.Fatal(err)
	}
	lab, err := cluster.NewLab(&render.Output{Lab: "mine", Namespace: "demo", Objects: []manifest.Object{object}})
	if err != nil {
		t.Fatal(err)
	}
	in := &inCluster{lab: lab, existing: cluster.Existing{Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}}}
	for yes, want := range map[bool]string{false: asks, true: ""} {
		err := (&deployFlags{yes: yes}).agreeNamespace(t.Context(), IO{In: strings.NewReader("y\n"), Err: io.Discard}, in)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("the level of a namespace, yes %t: %v", yes, err)
		}
	}
}

// At a terminal "no" has an exit code of its own.
func TestTerminal(t *testing.T) {
	for answer, want := range map[string]int{"n\n": ExitDeclined, "\n": ExitDeclined, "y\n": ExitOK} {
		keyboard, screen := pseudoterminal(t)
		if _, err := keyboard.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := confirm(t.Context(), IO{In: screen, Err: &out}, "Go on?", "--yes")
		var code exitCode
		errors.As(err, &code)
		if int(code) != want || (err == nil) != (want == ExitOK) {
			t.Errorf("%q: %v, %s", answer, err, out.String())
		}
	}
}

// pseudoterminal is a terminal (pty(7)): what is written to keyboard is typed at screen.
func pseudoterminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	return keyboard, screen
}

// To delete several labs, their names have to be typed, or the number of many.
func TestLabsAnswer(t *testing.T) {
	named := func(names ...string) (labs []cluster.Found) {
		for _, name := range names {
			labs = append(labs, cluster.Found{Name: name})
		}
		return labs
	}
	for _, c := range []struct {
		labs        []cluster.Found
		words, what string
	}{
		{named("demo"), "demo", "its name"},
		{named("b", "a", "b"), "a b b", "their names"},
		{named("a", "b", "c", "d"), "4", "the number of labs"},
	} {
		words, what := labsAnswer(c.labs)
		if strings.Join(words, " ") != c.words || what != c.what {
			t.Errorf("%v: %v, %s", c.labs, words, what)
		}
	}
}
