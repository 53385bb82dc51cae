package podnet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/sidecar/link"
)

// nextEpoch returns the clock's nanoseconds, or one more than the last epoch of this
// Pod where the clock has stepped back since, and notes it in file.
func nextEpoch(file string, clock time.Time) (uint64, error) {
	epoch := uint64(max(1, clock.UnixNano()))
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read the last epoch: %w", err)
	}
	// A file that cannot be understood is a torn one: peers then take this process as
	// soon as they miss the last one.
	if last, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 63); err == nil {
		epoch = max(epoch, last+1)
	}
	if err := link.WriteFile(file, strconv.AppendUint(nil, epoch, 10)); err != nil {
		return 0, fmt.Errorf("note the epoch: %w", err)
	}
	return epoch, nil
}
