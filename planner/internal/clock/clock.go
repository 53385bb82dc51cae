// Package clock pins this process's wall clock, so that what hooks make of the
// time of day is the same at any time of day. Monotonic clocks, and so deadlines,
// go on.
//
// Go asks the kernel's vDSO for the time (vdso(7)), by the address of the function
// there, which its runtime keeps in a variable. That is changed to the address of a
// function which knows a single instant. Its code goes to the end of the vDSO, in this
// process's own copy of the page, where nothing else is: by /proc/self/mem
// (proc_pid_mem(5)), as a debugger would. No code that other threads may be in the
// middle of is written to. Time namespaces would shift monotonic clocks only
// (time_namespaces(7)).
package clock

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"
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
	variable, err := holder(uint64(start + entry))
	if err != nil {
		return err
	}
	atomic.StoreUint64(variable, uint64(start)+uint64(place))
	return nil
}

// holder finds the one variable of this program with a value: in its data, or behind it
// in what has no bytes in the file, a mapping without a name.
func holder(value uint64) (*uint64, error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	var found []*uint64
	var behind uintptr
	err = mappings(func(start, end uintptr, flags, name string) {
		if name != program && (name != "" || start != behind) {
			return
		}
		behind = end
		if !strings.HasPrefix(flags, "rw") {
			return
		}
		for address := start; address < end; address += 8 {
			if word := *(**uint64)(unsafe.Pointer(&address)); atomic.LoadUint64(word) == value {
				found = append(found, word)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d variables have the address of the vDSO's function", len(found))
	}
	return found[0], nil
}

// mappings calls do for each line of /proc/self/maps, with the addresses of the first
// byte and of the byte after the last.
func mappings(do func(start, end uintptr, flags, name string)) error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		var start, end uintptr
		var flags, offset, device, name string
		var inode uint64
		if n, err := fmt.Sscanf(line, "%x-%x %s %s %s %d %s", &start, &end, &flags, &offset, &device, &inode, &name); n < 6 {
			return fmt.Errorf("reading /proc/self/maps: %w", err)
		}
		do(start, end, flags, name)
	}
	return nil
}

// mapping finds a mapping of this process by its name.
func mapping(name string) (start, end int64, err error) {
	err = mappings(func(from, to uintptr, _, n string) {
		if n == name {
			start, end = int64(from), int64(to)
		}
	})
	if err == nil && end == 0 {
		err = fmt.Errorf("this process has no %s", name)
	}
	return start, end, err
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
