// Package hosts keeps the lab's names in /etc/hosts.
package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strings"
)

// The lines between these are the sidecar's; all others are the kubelet's and
// the device's.
const (
	begin = "# BEGIN c9s: names of the lab"
	end   = "# END c9s"
)

// Update has block between the markers, at the end of the file. It writes in
// place, since the file is a mount of its own that a rename would not reach, and
// only where something differs. The kubelet writes the file anew whenever a
// container starts.
func Update(path string, block []byte) error {
	old, err := readBounded(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	text := With(old, block)
	if bytes.Equal(old, text) {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	// The new text first and then the cut, so that no reader finds an empty file.
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// maxHosts is the most that the file may hold, in bytes: a device can write what it
// likes into it, and the sidecar's memory is bounded.
const maxHosts = 4 << 20

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxHosts+1))
	if err == nil && len(data) > maxHosts {
		err = fmt.Errorf("it is longer than %d bytes", maxHosts)
	}
	return data, err
}

// With is old with the block in place of every earlier one. Of the block only lines of
// an address and names count: it comes from a ConfigMap, and a line of another form
// could end the block early, so that the file grows with each pass.
func With(old, block []byte) []byte {
	var out bytes.Buffer
	inside := false
	for _, line := range bytes.SplitAfter(old, []byte("\n")) {
		switch text := string(bytes.TrimRight(line, "\r\n")); {
		case text == begin:
			inside = true
		case text == end && inside:
			inside = false
		case !inside:
			out.Write(line)
		}
	}
	if block = names(block); len(block) == 0 {
		return out.Bytes()
	}
	if out.Len() > 0 && out.Bytes()[out.Len()-1] != '\n' {
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "%s\n%s\n%s\n", begin, bytes.TrimRight(block, "\n"), end)
	return out.Bytes()
}

// names are the lines of block that are an address and names.
func names(block []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(block) {
		if isEntry(string(line)) {
			out.Write(bytes.TrimRight(line, "\r\n"))
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// isEntry reports whether a line is one of hosts(5) with an address and at least one
// name.
func isEntry(line string) bool {
	fields := strings.FieldsFunc(strings.TrimRight(line, "\r\n"), func(r rune) bool { return r == ' ' || r == '\t' })
	if len(fields) < 2 {
		return false
	}
	if a, err := netip.ParseAddr(fields[0]); err != nil || a.Zone() != "" {
		return false
	}
	for _, name := range fields[1:] {
		if strings.ContainsFunc(name, notInName) {
			return false
		}
	}
	return true
}

// notInName reports whether a name in the file cannot have r. The names of bridge nodes
// and of old labs may have any printable character but "#", which begins a comment.
func notInName(r rune) bool { return r <= ' ' || r > '~' || r == '#' }
