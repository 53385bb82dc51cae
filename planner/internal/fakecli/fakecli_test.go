package fakecli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLeavingIsNotTyped: a driver types the line that leaves the session and closes
// the connection at once, so whether it arrives is a race.
func TestLeavingIsNotTyped(t *testing.T) {
	for _, typed := range []string{
		"enable\r\nconfigure terminal\r\nhostname r1\r\nend\r\nwr\r\nexit\r\n",
		"enable\r\nconfigure terminal\r\nhostname r1\r\nend\r\nwr\r\n",
	} {
		record := filepath.Join(t.TempDir(), "record")
		if err := Run(strings.NewReader(typed), io.Discard, record, []string{"Cli", "-p", "15"}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		if want := "\x00Cli -p 15\nenable\nconfigure terminal\nhostname r1\nend\nwr\n"; string(got) != want {
			t.Errorf("%q: recorded %q, want %q", typed, got, want)
		}
	}
}

// TestExitOfAModeIsTyped: in a configuration mode exit leads out of that mode only.
func TestExitOfAModeIsTyped(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	if err := Run(strings.NewReader("configure\nexit configuration-mode\nshow version\n"), io.Discard, record, []string{"cli"}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if want := "\x00cli\nconfigure\nexit configuration-mode\nshow version\n"; string(got) != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
}
