package sandbox

import (
	"fmt"
	"syscall"
)

// The most that the program may take: address space and the size of any one file
// that it writes, in bytes.
const (
	maxMemory = 4 << 30
	maxFile   = 256 << 20
)

// Limit bounds what this process and its children may take.
func Limit() error {
	for resource, limit := range map[int]uint64{syscall.RLIMIT_AS: maxMemory, syscall.RLIMIT_FSIZE: maxFile} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limiting what the hooks may take: %w", err)
		}
	}
	return nil
}
