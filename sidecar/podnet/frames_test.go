package podnet

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// frame is one of an EtherType for local experiments (IEEE 802, 88b5).
func frame(text string) []byte {
	b, _ := hex.DecodeString("ffffffffffffaac1ab00ee0188b5")
	return append(append(b, text...), make([]byte, 60)...)
}

// groupFrame is one to a group address of a bridge's own protocols.
func groupFrame(dst string) []byte {
	b, _ := hex.DecodeString(dst + "aac1ab00ee018809")
	return append(b, make([]byte, 60)...)
}

// carries sends a frame at one interface until it comes out at the other.
func carries(fromNS, from, toNS, to string, frame []byte, patience time.Duration) error {
	in, err := packetSocket(toNS, to)
	if err != nil {
		return err
	}
	defer unix.Close(in)
	out, err := packetSocket(fromNS, from)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	buf := make([]byte, 2000)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if _, err := unix.Write(out, frame); err != nil && !errors.Is(err, unix.ENETDOWN) {
			return err
		}
		for again := time.Now().Add(200 * time.Millisecond); time.Now().Before(again); {
			n, from, err := unix.Recvfrom(in, buf, 0)
			if err != nil {
				break
			}
			if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype != unix.PACKET_OUTGOING && bytes.Equal(buf[:n], frame) {
				return nil
			}
		}
	}
	return fmt.Errorf("the frame did not arrive within %s", patience)
}

func packetSocket(ns, name string) (fd int, err error) {
	err = withNS(ns, func() error {
		i, err := net.InterfaceByName(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all&0xffff); err != nil {
			return err
		}
		timeout := unix.NsecToTimeval(int64(100 * time.Millisecond))
		return errors.Join(
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all & 0xffff, Ifindex: i.Index}))
	})
	return fd, err
}

// hellos counts the handshakes of wires among the frames that a packet socket has
// received: there is none as long as two Pods have not lost each other.
func hellos(fd int) (n int) {
	buf := make([]byte, 100)
	for {
		k, _, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n
		}
		udp := 14 + 20
		if k > 14 && buf[12] == 0x86 {
			udp = 14 + 40
		}
		// The version, 1, and the type of a hello, 2 (docs/reference/wire.md).
		if k > udp+8 && int(buf[udp+2])<<8|int(buf[udp+3]) == contract.WirePort && buf[udp+8] == 0x12 {
			n++
		}
	}
}
