package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/c9s-lab/c9s/sidecar/hold"
	"github.com/c9s-lab/c9s/sidecar/nspace"
	"github.com/c9s-lab/c9s/sidecar/podnet"
	"github.com/c9s-lab/c9s/sidecar/seat"
)

// Run is the subcommand: the request is the first line of its standard input, the frames are its
// standard output. Its process is in the device's network namespace.
func Run(ctx context.Context, dir string) error {
	debug.SetGCPercent(25)
	debug.SetMemoryLimit(32 << 20)
	free, err := seat.Take(dir, "capture", Captures)
	if errors.Is(err, seat.ErrTaken) {
		err = fmt.Errorf("there are %d captures in this Pod, which is the limit: end one of them", Captures)
	}
	if err != nil {
		return err
	}
	defer free()
	device, err := nspace.Current()
	if err != nil {
		return err
	}
	defer device.Close()
	own, err := hold.Own(dir)
	if err != nil {
		return err
	}
	defer own.Close()
	s := &Session{Device: device, Own: own, Status: podnet.Status}
	return s.Run(ctx, os.Stdin, os.Stdout)
}
