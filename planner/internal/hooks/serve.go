package hooks

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/c9s-lab/c9s/pkg/plan"
)

// MaxRequest bounds a request, in bytes.
const MaxRequest = 256 << 20

// Serve says what this program is, then answers one request after the other until
// there are no more. It ends earlier after a node that left something behind.
func Serve(in io.Reader, out io.Writer) error {
	syscall.Umask(0) // the modes that hooks ask for are those that devices see
	write := json.NewEncoder(out)
	if err := write.Encode(plan.Response{Version: plan.ProtocolVersion, Planner: Name, Kinds: plannable()}); err != nil {
		return err
	}
	requests, problems := make(chan *plan.Request), make(chan error, 1)
	busy := make(chan struct{}, 1)
	go func() {
		err := readRequests(in, requests)
		select {
		case busy <- struct{}{}:
			problems <- err
			close(requests)
		default:
			os.Exit(1) // who asked is gone, and a hook may never end
		}
	}()
	for {
		req, more := <-requests
		if !more {
			return <-problems
		}
		busy <- struct{}{}
		answer := respond(req)
		if err := write.Encode(answer); err != nil || answer.Last {
			return err
		}
		<-busy
	}
}

// readRequests reads until the input ends.
func readRequests(in io.Reader, requests chan<- *plan.Request) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > MaxRequest {
			return fmt.Errorf("the request has more than %d bytes", MaxRequest)
		}
		if len(line) > 0 {
			req := &plan.Request{}
			if err := json.Unmarshal(line, req); err != nil {
				return fmt.Errorf("the request cannot be read: %w", err)
			}
			requests <- req
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func respond(req *plan.Request) *plan.Response {
	answer := &plan.Response{Version: plan.ProtocolVersion, Planner: Name}
	if req.Version != plan.ProtocolVersion {
		answer.Error = fmt.Sprintf("the request has version %q, and this program speaks %s", req.Version, plan.ProtocolVersion)
		return answer
	}
	p, last, err := Plan(req)
	answer.Last = last
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	answer.Plan = p
	return answer
}

// plannable are the names of the kinds that this process can plan: those that are
// registered, without those that no Pod can run, and those whose hooks need what the
// caller may not do.
func plannable() []string {
	names := slices.DeleteFunc(Kinds(), func(kind string) bool { _, refused := refusedKinds[kind]; return refused })
	if !mayGive(vyattacfg) {
		names = slices.DeleteFunc(names, func(kind string) bool { return strings.HasPrefix(kind, "vyos") })
	}
	return names
}

// vyattacfg is the group of VyOS's configuration system, which its hook gives files to.
const vyattacfg = 102

// mayGive reports whether this process may give a file to a group.
func mayGive(gid int) bool {
	file, err := os.CreateTemp("", "group-")
	if err != nil {
		return false
	}
	defer os.Remove(file.Name())
	defer file.Close()
	return file.Chown(0, gid) == nil || file.Chown(-1, gid) == nil
}
