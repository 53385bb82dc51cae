package cli

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// fullDisk takes nothing, as /dev/full does.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestOutputThatCannotBeWritten: a command whose output is lost does not end well.
func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{
		{"validate", demoTopo}, {"render", demoTopo}, {"render", demoTopo, "--format", "json"}, {"plan", demoTopo}, {"graph", demoTopo},
		{"kinds"}, {"explain"}, {"explain", "topology.nodes"}, {"explain", "bad-address"}, {"version"}, {"--help"}, {"deploy", "--help"}, {},
	} {
		var errs bytes.Buffer
		code := Main(args, IO{In: strings.NewReader(""), Out: fullDisk{}, Err: &errs})
		if code != ExitFailure || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("c9s %s: exit code %d\n%s", strings.Join(args, " "), code, errs.String())
		}
	}
}

// TestInterrupt: Ctrl-C ends a command with "interrupted" and 130, whatever it waits for.
func TestInterrupt(t *testing.T) {
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer server.Close()
	go func() {
		<-asked
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}()
	var errs bytes.Buffer
	code := Main([]string{"validate", "--trust", server.URL + "/a.clab.yml"}, IO{In: strings.NewReader(""), Out: io.Discard, Err: &errs})
	if code != exitInterrupted || !strings.HasSuffix(errs.String(), "\ninterrupted\n") {
		t.Errorf("exit code %d: %q", code, errs.String())
	}
}
