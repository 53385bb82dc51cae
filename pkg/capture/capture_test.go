package capture

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/pcapgo"
)

func TestStream(t *testing.T) {
	var b bytes.Buffer
	e := NewEncoder(&b)
	frame := Frame{Interface: 1, Direction: Out, Time: 1767225600123456789, Length: 1514, Segment: 2, Segments: 3, Data: []byte("some bytes")}
	state := State{Pod: "r1", Worker: "w1", Clock: &Clock{Epoch: 5, Base: 6, Peers: []PeerClock{{"r2", 7, -8, 9}}}, Interfaces: []InterfaceState{{Peer: "R2:eth1", Received: 3}, {Error: "not there"}}, End: true}
	e.State(state)
	e.Frame(&frame)
	e.Tick(42)
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(&b, 2)
	for _, want := range []Record{{State: &state}, {Frame: &frame}, {Tick: 42}} {
		got, err := d.Next()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	}
	if _, err := d.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// A hostile Pod's stream is rejected, and costs no more than its bytes.
func TestHostileStream(t *testing.T) {
	frame := func(f Frame) string {
		var b bytes.Buffer
		e := NewEncoder(&b)
		e.Frame(&f)
		_ = e.Flush()
		return b.String()
	}
	for name, text := range map[string]string{
		"no record":             "hello, world",
		"long":                  "S\xff\xff\xff\xff",
		"cut":                   "S\x00\x00\x00\x08{}",
		"no JSON":               "S\x00\x00\x00\x02{]",
		"other interfaces":      "S\x00\x00\x00\x02{}",
		"unknown interface":     frame(Frame{Interface: 2, Direction: In, Length: 1, Data: []byte{1}}),
		"no direction":          frame(Frame{Length: 1, Data: []byte{1}}),
		"longer than its frame": frame(Frame{Direction: In, Length: 1, Data: []byte{1, 2}}),
		"short frame":           "F\x00\x00\x00\x02ab",
		"short tick":            "T\x00\x00\x00\x02ab",
	} {
		if _, err := NewDecoder(strings.NewReader(text), 2).Next(); !errors.Is(err, errStream) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte("T\x00\x00\x00\x08abcdefgh"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := NewDecoder(bytes.NewReader(data), 2)
		for {
			r, err := d.Next()
			if err != nil {
				return
			}
			if r.Frame != nil {
				_ = Line("R1:eth1", r.Frame)
			}
		}
	})
}

// Clocks are aligned within the stated error, over several Pods too.
func TestAlign(t *testing.T) {
	// Wire clocks began at 1000, 2000 and so on by the workers' clocks; w2's is 500 ahead of
	// w1's, w3's 70 behind w2's.
	at := func(pod, worker string, base int64, peers ...PeerClock) State {
		return State{Pod: pod, Worker: worker, Clock: &Clock{Epoch: uint64(base), Base: base, Peers: peers}}
	}
	states := map[string]State{
		// At the moment of truth 10000 by w1: a's wire clock has 9000, b's 10500-2000.
		"a": at("a", "w1", 1000, PeerClock{"b", 2000, -500, 9}),
		"b": at("b", "w2", 2000, PeerClock{"a", 1000, 501, 4}, PeerClock{"c", 3000, -1070 + 3, 5}),
		"c": at("c", "w3", 3000),
		"d": at("d", "w3", 4000),
		"e": at("e", "w4", 5000, PeerClock{"a", 999, 0, 1}), // of a's last process
	}
	shifts := Align("a", states)
	for pod, want := range map[string]struct{ offset, wrong time.Duration }{"a": {0, 0}, "b": {-500, 4}, "c": {-430, 9}, "d": {-430, 9}} {
		s := shifts[pod]
		if !s.Known || s.Error != want.wrong || (s.Offset-want.offset).Abs() > s.Error {
			t.Errorf("%s: %+v, want %v within %v", pod, s, want.offset, want.wrong)
		}
	}
	if s := shifts["e"]; s.Known || !strings.Contains(s.Comment("w4"), "not aligned") {
		t.Errorf("e: %+v", s)
	}
	if text := shifts["b"].Comment("w2"); !strings.Contains(text, "error at most 4 ns") {
		t.Error(text)
	}
}

func TestMerger(t *testing.T) {
	var got []int64
	m := Merger{Emit: func(_ int, f *Frame) { got = append(got, f.Time) }}
	now := time.Unix(0, 0)
	check := func(what string, want ...int64) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	m.Open(0, now)
	m.Open(1, now)
	m.Add(0, &Frame{Time: 30}, now)
	m.Add(0, &Frame{Time: 10}, now)
	m.Tick(0, 40, now)
	check("the other stream may have earlier ones")
	m.Add(1, &Frame{Time: 20}, now)
	m.Tick(1, 25, now)
	check("up to 25", 10, 20)
	m.Tick(0, 50, now.Add(2*time.Second))
	check("the other stream is silent", 10, 20, 30)
	m.Add(0, &Frame{Time: 45}, now)
	m.Close(1, now)
	check("the other stream has ended", 10, 20, 30, 45)
	m.Add(0, &Frame{Time: 70}, now)
	m.Add(0, &Frame{Time: 60}, now)
	m.Flush()
	check("the end", 10, 20, 30, 45, 60, 70)
}

// The file has an interface for each, directions, comments and counts.
func TestFile(t *testing.T) {
	var b bytes.Buffer
	f := NewFile(&b, "icmp")
	r1 := Described{Interface: Interface{"R1", "eth1"}, Peer: "R2:eth1", Comment: "clock one"}
	r2 := Described{Interface: Interface{"R2", "eth1"}, Peer: "R1:eth1", Comment: "clock two"}
	quiet := Described{Interface: Interface{"R3", "eth9"}}
	for _, w := range []struct {
		d Described
		f Frame
	}{
		{r1, Frame{Direction: Out, Time: 1767225600123456789, Length: 100, Data: []byte("sent")}},
		{r2, Frame{Direction: In, Time: 1767225600123556789, Length: 4, Segment: 1, Segments: 3, Data: []byte("came")}},
	} {
		if err := f.Write(w.d, &w.f); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Add(quiet), f.Add(r1)); err != nil {
		t.Fatal(err)
	}
	f.Count(r1.Interface, 12, 3)
	if err := f.Close(time.Unix(1767225601, 0)); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(&b, pcapgo.NgReaderOptions{SkipUnknownVersion: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		data, info, options, err := r.ReadPacketDataWithOptions()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		in, _ := r.Interface(info.InterfaceIndex)
		got = append(got, strings.Join([]string{in.Name, in.Description, in.Comment, in.Filter, string(data), info.Timestamp.UTC().Format("05.999999999"), map[pcapgo.NgEpbFlag]string{1: "in", 2: "out"}[options.Flags.Direction], strings.Join(options.Comments, ",")}, "|"))
	}
	want := []string{
		"R1:eth1|link R1:eth1 - R2:eth1|clock one|icmp|sent|00.123456789|out|",
		"R2:eth1|link R2:eth1 - R1:eth1|clock two|icmp|came|00.123556789|in|Linux passed this frame and the next 2 as one",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r.NInterfaces() != 3 {
		t.Errorf("%d interfaces", r.NInterfaces())
	}
	if in, _ := r.Interface(0); in.Statistics.PacketsReceived != 12 || in.Statistics.PacketsDropped != 3 {
		t.Errorf("counts %+v", in.Statistics)
	}
}

func TestSummary(t *testing.T) {
	for frame, want := range map[string]string{
		"0200000000b20200000000a1" + "0800" + "4500002800010000400600000a0000010a000002" + "9c400050000000010000000050020000" + "00000000":            "10.0.0.1:40000 > 10.0.0.2:80 TCP SYN, 0 bytes of data",
		"0200000000b20200000000a1" + "0800" + "4500001c00010000400100000a0000010a000002" + "0800f7ff00000000":                                         "10.0.0.1 > 10.0.0.2 ICMP EchoRequest",
		"ffffffffffff0200000000a1" + "0806" + "00010800060400010200000000a10a0000010000000000000a000002":                                              "02:00:00:00:00:a1 > ff:ff:ff:ff:ff:ff ARP who has 10.0.0.2, tell 10.0.0.1",
		"0200000000b20200000000a1" + "86dd" + "600000000008113f20010db800000000000000000000000120010db8000000000000000000000002" + "14e9003500080000": "[2001:db8::1]:5353 > [2001:db8::2]:53 UDP",
		"0200000000b20200000000a1" + "810000640800" + "4500001c00010000400100000a0000010a000002" + "0000ffff00000000":                                 "10.0.0.1 > 10.0.0.2 ICMP EchoReply",
		"0200000000b20200000000a1" + "9999" + "00": "02:00:00:00:00:a1 > 02:00:00:00:00:b2 EtherType 0x9999",
		"0200": "a frame that is too short",
		"":     "a frame that is too short",
	} {
		data, err := hex.DecodeString(frame)
		if err != nil {
			t.Fatal(err)
		}
		if got := Summary(data); got != want {
			t.Errorf("%s\n got %s\nwant %s", frame, got, want)
		}
	}
	f := &Frame{Direction: Out, Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.Local).UnixNano(), Length: 60}
	if got, want := Line("R1:eth1", f), "03:04:05.000006 R1:eth1 > a frame that is too short, 60 bytes"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
