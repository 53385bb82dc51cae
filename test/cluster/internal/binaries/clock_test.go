package binaries

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const clockProgram = `package main

import (
	"fmt"
	"time"
)

func main() {
	began := time.Now()
	time.Sleep(time.Millisecond)
	fmt.Println(began.Unix(), time.Since(began) > 0 && time.Since(began) < time.Minute)
}
`

// A program built with the overlay has its clock off by as much as it is told, and
// only then; intervals are right.
func TestOverlay(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module clock\n", "main.go": clockProgram} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := Cache{Dir: t.TempDir()}.Overlay(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := goCommand(t.Context(), dir, "build", "-trimpath", "-overlay", overlay, "-o", "clock", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for env, want := range map[string]time.Duration{"": 0, ClockVariable + "=600": 10 * time.Minute, ClockVariable + "=-600": -10 * time.Minute, ClockVariable + "=soon": 0} {
		cmd := exec.Command(filepath.Join(dir, "clock"))
		cmd.Env = []string{env}
		began := time.Now()
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		stamp, interval, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		said, err := time.ParseDuration(stamp + "s")
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Unix(0, 0).Add(said).Sub(began.Add(want)); off.Abs() > time.Minute || interval != "true" {
			t.Errorf("%q: off by %s from what it should be, intervals right: %s", env, off, interval)
		}
	}
}

func TestOffsetElsewhere(t *testing.T) {
	if _, err := offset("func Now() Time { return Time{} }"); err == nil {
		t.Error("a time.Now that is another one was changed")
	}
}
