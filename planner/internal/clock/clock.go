// Package clock pins this process's wall clock, so that what hooks make of the
// time of day is the same at any time of day. Monotonic clocks, and so deadlines,
// go on.
//
// Go asks the kernel's vDSO for the time (vdso(7)); the function there is
// redirected, in this process's own copy of the page, to one that knows a single
// instant. A debugger sets breakpoints in the same way, through /proc/self/mem
// (proc_pid_mem(5)). Time namespaces would shift monotonic clocks only
// (time_namespaces(7)).
package clock

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Instant is the time of day that hooks see.
var Instant = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Pin makes time.Now return the instant t, to the second, in every goroutine of
// this process. What the process starts has the true time. It cannot be undone.
// The error is for a kernel or a processor where this cannot be done; the clock is
// the true one then.
func Pin(t time.Time) error {
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("pinning the clock: %w", err)
	}
	defer memory.Close()
	if err := pin(memory, t); err != nil {
		return fmt.Errorf("pinning the clock: %w", err)
	}
	if now := time.Now(); now.Unix() != t.Unix() {
		return fmt.Errorf("pinning the clock: it says %v still", now)
	}
	return nil
}

// memory is a process's memory, by address.
type memory interface {
	io.ReaderAt
	io.WriterAt
}

func pin(m memory, t time.Time) error {
	start, end, err := mapping("[vdso]")
	if err != nil {
		return err
	}
	image := make([]byte, end-start)
	if _, err := m.ReadAt(image, start); err != nil {
		return err
	}
	entry, err := symbol(image, clockGettime)
	if err != nil {
		return err
	}
	// The image is padded to whole pages; what replaces the function goes there.
	code := pinned(t.Unix())
	place := len(image) - len(code)
	if place < 0 || len(bytes.Trim(image[place:], "\x00")) > 0 {
		return errors.New("the vDSO has no room at its end")
	}
	if _, err := m.WriteAt(code, start+int64(place)); err != nil {
		return err
	}
	_, err = m.WriteAt(jump(int64(place)-entry), start+entry)
	return err
}

// mapping finds a mapping of this process by its name in /proc/self/maps, as the
// addresses of its first byte and of the byte after its last.
func mapping(name string) (start, end int64, err error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, 0, err
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if strings.HasSuffix(lines.Text(), name) {
			_, err := fmt.Sscanf(lines.Text(), "%x-%x", &start, &end)
			return start, end, err
		}
	}
	return 0, 0, fmt.Errorf("this process has no %s", name)
}

// symbol finds a function in an ELF image, as its offset.
func symbol(image []byte, name string) (int64, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == name && s.Value < uint64(len(image)) {
			return int64(s.Value), nil
		}
	}
	return 0, fmt.Errorf("the vDSO has no %s", name)
}
