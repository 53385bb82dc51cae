//go:build !nocluster

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/capture"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// sidecars are far ends of captures. Each has frames for its one interface, at times after a
// start by the clock of its worker.
type sidecars map[string]struct {
	clock  capture.Clock
	ahead  time.Duration // of the worker's clock
	frames []time.Duration
}

var captureStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// start is an access.Start.
func (s sidecars) start(_ context.Context, pod string, in io.Reader, out, _ io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var request capture.Request
	if err := json.Unmarshal(line, &request); err != nil || len(request.Interfaces) != 1 {
		return fmt.Errorf("the request is %s", line)
	}
	me := s[pod]
	e := capture.NewEncoder(out)
	state := capture.State{Worker: "on-" + pod, Clock: &me.clock, Interfaces: []capture.InterfaceState{{Peer: "X:eth1"}}}
	e.State(state)
	for _, at := range me.frames {
		stamp := captureStart.Add(at + me.ahead).UnixNano()
		e.Frame(&capture.Frame{Direction: capture.Out, Time: stamp, Length: 60, Data: make([]byte, 60)})
		e.Tick(stamp)
	}
	if err := e.Flush(); err != nil {
		return err
	}
	_, _ = lines.ReadByte() // the end of the capture
	state.End, state.Interfaces[0].Received, state.Interfaces[0].Dropped = true, uint64(len(me.frames)+2), 2
	e.State(state)
	return e.Flush()
}

func twoSidecars() sidecars {
	ms := func(list ...int) (out []time.Duration) {
		for _, n := range list {
			out = append(out, time.Duration(n)*time.Millisecond)
		}
		return out
	}
	return sidecars{
		"a": {clock: capture.Clock{Epoch: 1, Base: 0, Peers: []capture.PeerClock{{Pod: "b", Epoch: 2, Offset: 7 * time.Second, Error: time.Millisecond}}}, frames: ms(10, 30, 50)},
		"b": {clock: capture.Clock{Epoch: 2, Base: 0}, ahead: 7 * time.Second, frames: ms(20, 40, 60)},
	}
}

var ofPods = map[string][]capture.Interface{"a": {{Node: "A", Name: "eth1"}}, "b": {{Node: "B", Name: "eth1"}}}

// runCapture captures until a number of frames have come, or for a time.
func runCapture(t *testing.T, start access.Start, count uint64, length time.Duration) (file []byte, lines, warnings []string, err error) {
	t.Helper()
	c := newCapturing(start, capture.Request{}, ofPods)
	var b bytes.Buffer
	c.file, c.count = capture.NewFile(&b, ""), count
	c.warn = func(text string) { warnings = append(warnings, text) }
	c.line = func(d capture.Described, f *capture.Frame) error {
		lines = append(lines, fmt.Sprintf("%s %d", d, time.Unix(0, f.Time).Sub(captureStart).Milliseconds()))
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	err = c.run(ctx)
	var summary bytes.Buffer
	c.summary(&summary)
	return b.Bytes(), append(lines, strings.Split(strings.TrimSpace(summary.String()), "\n")...), warnings, err
}

// Frames of two workers, whose clocks are seconds apart, come in their true order, with the error
// and the counts in the file.
func TestCaptureOrder(t *testing.T) {
	file, lines, warnings, err := runCapture(t, twoSidecars().start, 6, 20*time.Second)
	want := []string{"A:eth1 10", "B:eth1 20", "A:eth1 30", "B:eth1 40", "A:eth1 50", "B:eth1 60",
		"A:eth1: 2 of 5 frames were dropped, because they came faster than they could be sent", "B:eth1: 2 of 5 frames were dropped, because they came faster than they could be sent", "6 frames captured, 4 dropped"}
	if diff := cmp.Diff(want, lines); diff != "" || err != nil || len(warnings) > 0 {
		t.Errorf("%v, warnings %v %s", err, warnings, diff)
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; ; n++ {
		if _, _, err := r.ReadPacketData(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != 6 || r.NInterfaces() != 2 {
		t.Errorf("%d frames of %d interfaces", n, r.NInterfaces())
	}
	for i := range 2 {
		in, _ := r.Interface(i)
		if in.Statistics.PacketsDropped != 2 || in.Name == "B:eth1" && !strings.Contains(in.Comment, "error at most 1000000 ns") {
			t.Errorf("%+v", in)
		}
	}
}

// A capture ends after its time, also without a frame.
func TestCaptureTime(t *testing.T) {
	s := sidecars{"a": {}, "b": {}}
	file, lines, _, err := runCapture(t, s.start, 0, 300*time.Millisecond)
	if err != nil || lines[len(lines)-1] != "0 frames captured, 4 dropped" || len(file) == 0 {
		t.Errorf("%v, %v, %d bytes", err, lines, len(file))
	}
}

// A Pod that is replaced is captured again, and one whose sidecar knows no captures ends it.
func TestCapturePods(t *testing.T) {
	s := twoSidecars()
	var tries atomic.Int32
	_, lines, warnings, err := runCapture(t, func(ctx context.Context, pod string, in io.Reader, out, errs io.Writer) error {
		if pod == "b" && tries.Add(1) == 1 {
			return fmt.Errorf("the sidecar of Pod b %w", access.ErrAway)
		}
		return s.start(ctx, pod, in, out, errs)
	}, 6, 20*time.Second)
	if err != nil || tries.Load() != 2 || len(warnings) != 1 || !strings.Contains(warnings[0], "waiting for it") || len(lines) < 7 {
		t.Errorf("%v, %d tries, %v, %v", err, tries.Load(), warnings, lines)
	}
	old := errors.New("the sidecar is of an older c9s")
	if _, _, _, err := runCapture(t, func(ctx context.Context, pod string, in io.Reader, out, errs io.Writer) error {
		if pod == "b" {
			return old
		}
		return s.start(ctx, pod, in, out, errs)
	}, 6, 20*time.Second); !errors.Is(err, old) {
		t.Errorf("%v", err)
	}
}

func TestLinkEnds(t *testing.T) {
	end := func(node, name string) *contract.TopologyEnd {
		return &contract.TopologyEnd{Node: node, Interface: name}
	}
	links := []contract.TopologyLink{
		{ID: 1, A: *end("A", "eth1"), B: end("B", "eth1")}, {ID: 2, A: *end("B", "eth2"), B: end("A", "eth2")}, {ID: 3, A: *end("B", "eth3"), B: end("C", "eth1")}, {A: *end("A", "eth9")},
	}
	for args, want := range map[string]string{
		"A B":           "A:eth1 B:eth1 B:eth2 A:eth2",
		"A:eth2 B":      "B:eth2 A:eth2",
		"B:eth1 A:eth1": "A:eth1 B:eth1",
		"C:eth1":        "B:eth3 C:eth1",
		"A:eth9":        "A:eth9 does not lead to a node of the lab",
		"A C":           "no link leads from A to C",
		"A:eth1 B:eth2": "no link leads from A:eth1 to B:eth2",
	} {
		var wanted []capture.Interface
		for arg := range strings.FieldsSeq(args) {
			node, name, _ := strings.Cut(arg, ":")
			wanted = append(wanted, capture.Interface{Node: node, Name: name})
		}
		ends, err := linkEnds(links, wanted)
		var got []string
		for _, e := range ends {
			got = append(got, e.String())
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("--link %s: %s, want %s", args, text, want)
		}
	}
}
