//go:build !nocluster

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/c9s-lab/c9s/pkg/capture"
)

// rotation divides a capture into several files.
type rotation struct {
	// size and time begin a new file, once the present one has this many bytes or is this old;
	// 0 for never. files is how many are kept, 0 for all.
	size  string
	time  time.Duration
	files int

	bytes int64
}

func (r *rotation) add(fs *pflag.FlagSet) {
	fs.StringVar(&r.size, "file-size", "", "with -w, begin a new file after this many bytes, such as 500k, 10M or 1G")
	fs.DurationVar(&r.time, "file-time", 0, "with -w, begin a new file after this time")
	fs.IntVar(&r.files, "files", 0, "with --file-size or --file-time, keep only this many files, the newest ones")
}

func (r *rotation) wanted() bool { return r.size != "" || r.time != 0 || r.files != 0 }

// leastFile is the smallest size of a file, in bytes.
const leastFile = 10_000

func (r *rotation) check(write string, wireshark bool) error {
	if !r.wanted() {
		return nil
	}
	switch {
	case write == "" || write == "-" || wireshark:
		return errors.New("--file-size, --file-time and --files need -w FILE, without --wireshark")
	case r.size == "" && r.time == 0:
		return errors.New("--files needs --file-size or --file-time")
	case r.time != 0 && r.time < time.Second:
		return fmt.Errorf("--file-time %s: use at least 1s", r.time)
	case r.files < 0:
		return fmt.Errorf("--files %d: use a positive number", r.files)
	}
	if r.size == "" {
		return nil
	}
	q, err := resource.ParseQuantity(r.size)
	if err != nil || q.Value() < leastFile {
		return fmt.Errorf("--file-size %q: use a number of bytes from %d, such as 500k, 10M or 1G", r.size, leastFile)
	}
	r.bytes = q.Value()
	return nil
}

// rotating is the present file of a capture in several files.
type rotating struct {
	rotation
	name, filter string
	now          func() time.Time

	file    *os.File
	written int64
	opened  time.Time
	number  int
	past    []string // files that were written, the oldest first
}

// Write writes to the present file.
func (r *rotating) Write(p []byte) (int, error) {
	n, err := r.file.Write(p)
	r.written += int64(n)
	return n, err
}

// due reports whether a new file is to begin.
func (r *rotating) due() bool {
	return r.bytes > 0 && r.written >= r.bytes || r.time > 0 && r.now().Sub(r.opened) >= r.time
}

// next closes the present file, which is complete, and begins another one, named as dumpcap does:
// NAME_00001_20260102030405.pcapng.
func (r *rotating) next() (*capture.File, error) {
	if err := r.close(); err != nil {
		return nil, err
	}
	for r.files > 0 && len(r.past) >= r.files {
		if err := os.Remove(r.past[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		r.past = r.past[1:]
	}
	r.number++
	r.opened, r.written = r.now(), 0
	ext := filepath.Ext(r.name)
	name := fmt.Sprintf("%s_%05d_%s%s", strings.TrimSuffix(r.name, ext), r.number, r.opened.Format("20060102150405"), ext)
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	r.file, r.past = file, append(r.past, name)
	return capture.NewFile(r, r.filter), nil
}

func (r *rotating) close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}
