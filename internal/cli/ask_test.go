//go:build !nocluster

package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"
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
		if said := strings.Contains(out.String(), "nothing was done"); !strings.HasPrefix(out.String(), "Go on? [y/N] ") || said != (want == "no") {
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
	if ok || err == nil || !strings.Contains(err.Error(), "nothing was done") {
		t.Errorf("an interrupted question: %t, %v", ok, err)
	}
}
