package dial

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/hold"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// Run is the subcommand: the tunnel's stream is its standard input and output. Its process is
// in the device's network namespace, as every process of the sidecar's container begins there.
func Run(ctx context.Context, dir string) error {
	debug.SetGCPercent(25)
	debug.SetMemoryLimit(24 << 20)
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
	mgmt, err := contract.ReadMgmt(filepath.Join(contract.LinksDir, contract.LinksFile))
	if err != nil {
		return err
	}
	d, err := New(device, own, mgmt)
	if err != nil {
		return err
	}
	defer d.Close()
	return Serve(ctx, stdio(), d, dir)
}

// pipeSize is the length of the pipes to the container runtime, in bytes. A longer one makes
// both sides wait for each other less often.
const pipeSize = 256 << 10

// stdio returns standard input and output as one stream. Not blocking, so that closing them
// ends a read.
func stdio() io.ReadWriteCloser {
	files := [2]*os.File{}
	for fd := range files {
		_ = unix.SetNonblock(fd, true)
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize)
		files[fd] = os.NewFile(uintptr(fd), fmt.Sprintf("stdio-%d", fd))
	}
	return standard{files[0], files[1]}
}

type standard struct{ in, out *os.File }

func (s standard) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s standard) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s standard) Close() error {
	s.in.Close()
	return s.out.Close()
}
