//go:build !nocluster

package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/c9s-lab/c9s/pkg/capture"
)

// readFrames counts the frames and interfaces of a file.
func readFrames(t *testing.T, name string) (frames, interfaces int, dropped uint64) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for ; ; frames++ {
		if _, _, err := r.ReadPacketData(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for i := range r.NInterfaces() {
		in, _ := r.Interface(i)
		dropped += in.Statistics.PacketsDropped
	}
	return frames, r.NInterfaces(), dropped
}

// TestRotation: each file is complete by itself, no frame is lost between two, and only the
// newest are kept.
func TestRotation(t *testing.T) {
	const frames = 400
	for _, tt := range []struct {
		name string
		rotation
		// step is the time between two frames.
		step        time.Duration
		files, kept int // kept is the least number of frames in those that are left
	}{
		{"by size", rotation{size: "10k"}, 0, 6, frames},
		{"by time", rotation{time: time.Second}, 9 * time.Millisecond, 4, frames},
		{"a ring", rotation{size: "10k", files: 2}, 0, 2, 60},
	} {
		dir := t.TempDir()
		base := filepath.Join(dir, "x.pcapng")
		if err := tt.check(base, false); err != nil {
			t.Fatal(err)
		}
		now := captureStart
		of := map[string][]capture.Interface{"a": {{Node: "A", Name: "eth1"}}}
		c := newCapturing(nil, capture.Request{}, of)
		c.rotate = &rotating{rotation: tt.rotation, name: base, now: func() time.Time { return now }}
		c.keep(c.nextFile())
		for i := range frames {
			now = now.Add(tt.step)
			c.emit(0, &capture.Frame{Time: captureStart.UnixNano() + int64(i), Length: 100, Data: make([]byte, 100)})
			if i%10 == 0 {
				c.keep(c.flush())
			}
		}
		c.totals[of["a"][0]] = capture.InterfaceState{Received: frames, Dropped: 3}
		c.keep(c.finish())
		c.keep(c.rotate.close())
		if c.failed != nil {
			t.Fatalf("%s: %v", tt.name, c.failed)
		}
		names, _ := filepath.Glob(filepath.Join(dir, "x_*_20260102*.pcapng"))
		if len(names) != tt.files {
			t.Errorf("%s: %d files: %q", tt.name, len(names), names)
		}
		total := 0
		for i, name := range names {
			n, interfaces, dropped := readFrames(t, name)
			total += n
			if interfaces != 1 || n == 0 {
				t.Errorf("%s: %s has %d frames, %d interfaces", tt.name, name, n, interfaces)
			}
			if last := i == len(names)-1; last != (dropped == 3) {
				t.Errorf("%s: %s says that %d were dropped", tt.name, name, dropped)
			}
		}
		if total < tt.kept || tt.files > 2 && total != frames {
			t.Errorf("%s: %d frames in all", tt.name, total)
		}
	}
}

func TestRotationFlags(t *testing.T) {
	for _, tt := range []struct {
		rotation
		write     string
		wireshark bool
		ok        bool
	}{
		{rotation{}, "", false, true},
		{rotation{size: "10M"}, "x", false, true},
		{rotation{size: "10Mi", time: time.Minute, files: 3}, "x", false, true},
		{rotation{size: "10M"}, "-", false, false},
		{rotation{size: "10M"}, "", true, false},
		{rotation{size: "10"}, "x", false, false},
		{rotation{size: "ten"}, "x", false, false},
		{rotation{files: 3}, "x", false, false},
		{rotation{time: time.Millisecond}, "x", false, false},
	} {
		if err := tt.check(tt.write, tt.wireshark); (err == nil) != tt.ok {
			t.Errorf("%s: %v", fmt.Sprintf("%+v -w %q", tt.rotation, tt.write), err)
		}
	}
}
