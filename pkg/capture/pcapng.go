package capture

import (
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// Described is an interface with what a file says of it.
type Described struct {
	Interface
	// Peer is the far end, "" for none.
	Peer string
	// Comment is about the clock.
	Comment string
}

// File writes frames as pcapng. Interfaces are added as their first frames come, so that nodes
// can join.
type File struct {
	out    io.Writer
	filter string
	w      *pcapgo.NgWriter
	ids    map[Interface]int
	counts []counts
}

type counts struct{ received, dropped uint64 }

// NewFile returns a file. filter is the text of the filter.
func NewFile(w io.Writer, filter string) *File {
	return &File{out: w, filter: filter, ids: map[Interface]int{}}
}

// id returns the number of an interface in the file.
func (f *File) id(d Described) (int, error) {
	if id, ok := f.ids[d.Interface]; ok {
		return id, nil
	}
	ng := pcapgo.NgInterface{
		Name: d.String(), Description: "interface " + d.String(), Comment: d.Comment, Filter: f.filter, OS: "Linux",
		LinkType: layers.LinkTypeEthernet, TimestampResolution: 9,
	}
	if d.Peer != "" {
		ng.Description = "link " + d.String() + " - " + d.Peer
	}
	id := 0
	var err error
	if f.w == nil {
		f.w, err = pcapgo.NewNgWriterInterface(f.out, ng, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "c9s"}})
	} else {
		id, err = f.w.AddInterface(ng)
	}
	if err != nil {
		return 0, fmt.Errorf("writing the capture: %w", err)
	}
	f.ids[d.Interface] = id
	f.counts = append(f.counts, counts{})
	return id, nil
}

// Add adds an interface before its first frame.
func (f *File) Add(d Described) error {
	_, err := f.id(d)
	return err
}

// Write writes a frame.
func (f *File) Write(d Described, frame *Frame) error {
	id, err := f.id(d)
	if err != nil {
		return err
	}
	direction := pcapgo.NgEpbFlagDirectionInbound
	if frame.Direction == Out {
		direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	options := pcapgo.NgPacketOptions{Flags: &pcapgo.NgEpbFlags{Direction: direction}}
	if frame.Segment == 1 {
		options.Comments = []string{fmt.Sprintf("Linux passed this frame and the next %d as one", frame.Segments-1)}
	}
	info := gopacket.CaptureInfo{Timestamp: time.Unix(0, frame.Time), CaptureLength: len(frame.Data), Length: frame.Length, InterfaceIndex: id}
	if err := f.w.WritePacketWithOptions(info, frame.Data, options); err != nil {
		return fmt.Errorf("writing the capture: %w", err)
	}
	return nil
}

// Flush writes what is buffered.
func (f *File) Flush() error {
	if f.w == nil {
		return nil
	}
	return f.w.Flush()
}

// Count sets the counters of an interface, which the file's end has.
func (f *File) Count(i Interface, received, dropped uint64) {
	if id, ok := f.ids[i]; ok {
		f.counts[id] = counts{received, dropped}
	}
}

// Close writes the counters.
func (f *File) Close(now time.Time) error {
	for id, c := range f.counts {
		err := f.w.WriteInterfaceStats(id, pcapgo.NgInterfaceStatistics{LastUpdate: now, PacketsReceived: c.received, PacketsDropped: c.dropped})
		if err != nil {
			return fmt.Errorf("writing the capture: %w", err)
		}
	}
	return f.Flush()
}
