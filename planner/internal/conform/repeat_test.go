package conform_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/planner/internal/conform"
	"github.com/c9s-lab/c9s/planner/internal/hooks"
	"github.com/c9s-lab/c9s/planner/internal/program"
	"github.com/c9s-lab/c9s/planner/internal/sandbox"
	"github.com/google/go-cmp/cmp"
)

// job is one node of one lab.
type job struct {
	lab  *lab.Lab
	node *lab.Node
	name string
}

// jobs are the nodes of every kind in every form.
func jobs(t *testing.T) []job {
	t.Helper()
	labs, err := conform.KindLabs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out []job
	for i, l := range labs {
		out = append(out, job{lab: l, node: l.Nodes[0], name: fmt.Sprintf("%s, form %d", l.Nodes[0].Kind, i)})
	}
	return out
}

// planAll plans the jobs in an order, and returns the plans by the job's place.
func planAll(t *testing.T, p plan.Planner, all []job, order []int) []string {
	t.Helper()
	out := make([]string, len(all))
	for _, i := range order {
		planned, err := p.Plan(context.Background(), all[i].lab, all[i].node)
		if err != nil {
			t.Fatalf("%s: %v", all[i].name, err)
		}
		text, err := json.MarshalIndent(planned, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(text)
	}
	return out
}

func inSequence(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func program1(t *testing.T, options ...plan.HooksOption) *plan.Hooks {
	t.Helper()
	h := plan.NewHooks(programPath(t), append(options, plan.WithProcesses(1))...)
	t.Cleanup(func() { h.Close() })
	return h
}

// TestOrderDoesNotMatter plans every kind in every form in one process, in random
// orders. What one node leaves behind in the process reaches no other.
func TestOrderDoesNotMatter(t *testing.T) {
	all := jobs(t)
	want := planAll(t, program1(t), all, inSequence(len(all)))
	seed := rand.Uint64()
	t.Logf("%d plans, seed %d", len(all), seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2 {
		got := planAll(t, program1(t), all, random.Perm(len(all)))
		for i := range all {
			if diff := cmp.Diff(want[i], got[i]); diff != "" {
				t.Errorf("%s depends on what was planned before (seed %d):\n%s", all[i].name, seed, diff)
			}
		}
	}
}

// TestTimeDoesNotMatter plans every kind in every form at two times of day a year apart.
func TestTimeDoesNotMatter(t *testing.T) {
	all := jobs(t)
	at := func(moment string) []string {
		return planAll(t, program1(t, plan.WithArgs("at", moment)), all, inSequence(len(all)))
	}
	early, late := at("2026-03-01T04:15:30Z"), at("2027-03-02T19:45:07Z")
	now := planAll(t, program1(t), all, inSequence(len(all)))
	for i := range all {
		if diff := cmp.Diff(early[i], late[i]); diff != "" {
			t.Errorf("%s depends on the time of day:\n%s", all[i].name, diff)
		}
		if diff := cmp.Diff(early[i], now[i]); diff != "" {
			t.Errorf("%s is another at the true time:\n%s", all[i].name, diff)
		}
	}
}

// planAt is the planner program at another time of day. The hooks run in a bubble of
// testing/synctest, whose clock is set by sleeping: it stands still until everything in
// the bubble waits for it.
func planAt(moment string) {
	if !sandbox.Inside() {
		code, err := sandbox.Enter()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}
	when, err := time.Parse(time.RFC3339, moment)
	if err == nil {
		err = program.Confine()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answers := os.Stdout
	os.Stdout = os.Stderr
	syscall.Umask(0)
	serve := func(t *testing.T) {
		synctest.Test(t, func(*testing.T) {
			time.Sleep(time.Until(when))
			if now := time.Now(); !now.Equal(when) {
				err = fmt.Errorf("it is %s", now)
			} else {
				err = answer(os.Stdin, answers)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0) // what hooks leave in the bubble ends with it
		})
	}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "serve", F: serve}}, nil, nil)
}

// answer is hooks.Serve without goroutines.
func answer(in io.Reader, out io.Writer) error {
	write := json.NewEncoder(out)
	if err := write.Encode(plan.Response{Version: plan.ProtocolVersion, Planner: hooks.Name}); err != nil {
		return err
	}
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		req := &plan.Request{}
		if err == nil {
			err = json.Unmarshal(line, req)
		}
		if err != nil {
			return err
		}
		p, last, err := hooks.Plan(req)
		response := &plan.Response{Version: plan.ProtocolVersion, Planner: hooks.Name, Plan: p, Last: last}
		if err != nil {
			response.Plan, response.Error = nil, err.Error()
		}
		if err := write.Encode(response); err != nil || last {
			return err
		}
	}
}
