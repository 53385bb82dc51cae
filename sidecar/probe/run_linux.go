package probe

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// clusterName resolves in every cluster with a DNS (Kubernetes DNS specification,
// 2.3).
const clusterName = "kubernetes.default.svc"

// Run tries everything.
func Run(ctx context.Context) Report {
	r := Report{Version: Version, Kernel: kernel(), MTU: podMTU(), DNS: lookup(ctx)}
	for _, t := range trials {
		r.Features = append(r.Features, outcome(t.feature, t.run()))
	}
	return r
}

// Write prints the report, and leaves it in file too, if that is not "".
func (r Report) Write(w io.Writer, file string) error { return write(w, file, r) }

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// podMTU is the MTU of the interface by which the Pod reaches the cluster.
func podMTU() int {
	all, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			return i.MTU
		}
	}
	return 0
}

const lookupTimeout = 5 * time.Second

func lookup(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(ctx, clusterName); err != nil {
		return outcome("", err).Error
	}
	return ""
}

// apart runs a try in a new network namespace, which ends with it.
func apart(try func() error) error {
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and the namespace
		// with the thread.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("new network namespace: %w", err)
			return
		}
		done <- try()
	}()
	return <-done
}
