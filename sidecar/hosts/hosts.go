// Package hosts keeps the lab's names in /etc/hosts.
package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	old, err := os.ReadFile(path)
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

// With is old with the block in place of every earlier one.
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
	if len(bytes.TrimSpace(block)) == 0 {
		return out.Bytes()
	}
	if out.Len() > 0 && out.Bytes()[out.Len()-1] != '\n' {
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "%s\n%s\n%s\n", begin, bytes.TrimRight(block, "\n"), end)
	return out.Bytes()
}
