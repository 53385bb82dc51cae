//go:build linux

package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"
	"unsafe"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// transfer sends n bytes by TCP and checks all of them at the other end.
func transfer(t testing.TB, from, to *testNS, addr string, n int) error {
	t.Helper()
	var ln, out int
	var err error
	to.do(func() { ln, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) })
	fatal(t, err)
	defer unix.Close(ln)
	unix.SetsockoptInt(ln, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	fatal(t, unix.Bind(ln, &unix.SockaddrInet4{Port: 5300}))
	fatal(t, unix.Listen(ln, 1))
	from.do(func() { out, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) })
	fatal(t, err)
	defer unix.Close(out)
	limit := &unix.Timeval{Sec: 60}
	unix.SetsockoptTimeval(out, unix.SOL_SOCKET, unix.SO_SNDTIMEO, limit)
	if err := connect(out, &unix.SockaddrInet4{Port: 5300, Addr: [4]byte(net.ParseIP(addr).To4())}); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	in, _, err := unix.Accept(ln)
	fatal(t, err)
	defer unix.Close(in)
	unix.SetsockoptTimeval(in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, limit)
	// Numbers, so that any exchanged or missing byte shows.
	data := make([]byte, n)
	for i := 0; i+4 <= n; i += 4 {
		binary.BigEndian.PutUint32(data[i:], uint32(i)*2654435761)
	}
	sent := make(chan error, 1)
	go func() {
		for rest := data; len(rest) > 0; {
			k, err := unix.Write(out, rest)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				sent <- fmt.Errorf("sending, %d bytes left: %w", len(rest), err)
				return
			}
			rest = rest[k:]
		}
		unix.Shutdown(out, unix.SHUT_WR)
		sent <- nil
	}()
	buf, got := make([]byte, 256<<10), 0
	for {
		k, err := unix.Read(in, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("receiving after %d bytes: %w", got, err)
		}
		if k == 0 {
			break
		}
		if string(buf[:k]) != string(data[got:got+k]) {
			return fmt.Errorf("other bytes after %d", got)
		}
		got += k
	}
	if got != n {
		return fmt.Errorf("%d of %d bytes", got, n)
	}
	return <-sent
}

// lose drops one of n IP packets that the underlay forwards.
func (l *testLab) lose(t testing.TB, n uint32) {
	t.Helper()
	var err error
	l.under.do(func() {
		var c *nftables.Conn
		if c, err = nftables.New(); err != nil {
			return
		}
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyBridge, Name: "loss"})
		prio := nftables.ChainPriority(0)
		chain := c.AddChain(&nftables.Chain{Name: "f", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward, Priority: &prio})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Numgen{Register: 1, Modulus: n, Type: unix.NFT_NG_RANDOM},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(0)},
			&expr.Verdict{Kind: expr.VerdictDrop},
		}})
		err = c.Flush()
	})
	if err != nil {
		t.Skipf("no nftables on bridges here, so no loss: %v", err)
	}
	// Segments are lost one by one, as on a cable, not a whole super-frame.
	for _, p := range l.pods {
		p.ns.feature(t, "c9s0", "tx-udp-segmentation", false)
	}
}

// feature switches an offload of an interface, as ethtool -K.
func (n *testNS) feature(t testing.TB, dev, name string, on bool) {
	t.Helper()
	n.do(func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		fatal(t, err)
		defer unix.Close(fd)
		ioctl := func(b []byte) error {
			ifr := struct {
				name [16]byte
				data unsafe.Pointer
				_    [16]byte
			}{data: unsafe.Pointer(&b[0])}
			copy(ifr.name[:], dev)
			if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifr))); e != 0 {
				return e
			}
			return nil
		}
		const gStrings, gSSetInfo, sFeatures, setFeatures = 0x1b, 0x37, 0x3b, 4
		info := make([]byte, 20)
		binary.NativeEndian.PutUint32(info, gSSetInfo)
		binary.NativeEndian.PutUint64(info[8:], 1<<setFeatures)
		fatal(t, ioctl(info))
		count := int(binary.NativeEndian.Uint32(info[16:]))
		names := make([]byte, 12+32*count)
		binary.NativeEndian.PutUint32(names, gStrings)
		binary.NativeEndian.PutUint32(names[4:], setFeatures)
		binary.NativeEndian.PutUint32(names[8:], uint32(count))
		fatal(t, ioctl(names))
		blocks := (count + 31) / 32
		set := make([]byte, 8+8*blocks)
		binary.NativeEndian.PutUint32(set, sFeatures)
		binary.NativeEndian.PutUint32(set[4:], uint32(blocks))
		for i := range count {
			s := names[12+32*i : 12+32*(i+1)]
			if unix.ByteSliceToString(s) == name {
				at := 8 + 8*(i/32)
				binary.NativeEndian.PutUint32(set[at:], 1<<(i%32))
				if on {
					binary.NativeEndian.PutUint32(set[at+4:], 1<<(i%32))
				}
				fatal(t, ioctl(set))
				return
			}
		}
		t.Fatalf("%s has no feature %s", dev, name)
	})
	time.Sleep(time.Millisecond)
}

// connect is connect(2) for a blocking socket. A signal, as Go's scheduler sends
// them, does not end the attempt: it goes on, and its end is waited for.
func connect(fd int, to unix.Sockaddr) error {
	err := unix.Connect(fd, to)
	if err != unix.EINTR {
		return err
	}
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	for {
		if _, err := unix.Poll(p, 60_000); err == nil {
			break
		} else if err != unix.EINTR {
			return err
		}
	}
	if p[0].Revents == 0 {
		return unix.ETIMEDOUT
	}
	if e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || e != 0 {
		return errors.Join(err, unix.Errno(e))
	}
	return nil
}
