package measure

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Frames have an EtherType for local experiments (IEEE 802), and a group address that no
// bridge forwards (802.1D), whatever its mask: a frame from a peer came by the link alone.
const etherType = 0x88b5

var group = net.HardwareAddr{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01}

const (
	headerLength = 14
	// A payload has magic, the nonce, whether the peer was heard, and the sender.
	magic       = "c9sM"
	senderAt    = len(magic) + 8 + 1
	maxSender   = 255
	smallest    = senderAt + 1 + maxSender
	sendEvery   = 50 * time.Millisecond
	afterwards  = 4 // frames that are sent after both ends have heard one another
	mostSeconds = 60
)

// exchange sends frames by all interfaces until the peers have been heard and have heard.
func exchange(ctx context.Context, r *contract.FramesRequest) []contract.FrameResult {
	limit := time.Duration(min(r.Seconds, mostSeconds) * float64(time.Second))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := make([]contract.FrameResult, len(r.Interfaces))
	var wg sync.WaitGroup
	for i, end := range r.Interfaces {
		wg.Go(func() { out[i] = exchangeAt(ctx, r.Nonce, end) })
	}
	wg.Wait()
	return out
}

// exchangeAt exchanges frames by one interface. A frame is the link's MTU long, so one that
// was cut or dropped for its size is not heard.
func exchangeAt(ctx context.Context, nonce uint64, end contract.FrameEnd) (result contract.FrameResult) {
	in, err := net.InterfaceByName(end.Interface)
	if err != nil {
		result.Error = "the device has moved it to another network namespace, or removed it"
		return result
	}
	result.MTU, result.Up = in.MTU, in.Flags&net.FlagUp != 0 && in.Flags&net.FlagRunning != 0
	size := max(end.Size, 0)
	if size == 0 {
		size = in.MTU
	}
	switch {
	case !result.Up:
		result.Error = "it is down"
		return result
	case size > in.MTU:
		result.Error = fmt.Sprintf("its MTU is %d", in.MTU)
		return result
	case len(end.Self) > maxSender || size < smallest:
		result.Error = fmt.Sprintf("packets of %d bytes are too small to test with", size)
		return result
	}
	s, err := openSocket(in.Index)
	if err != nil {
		result.Error = err.Error()
		return result
	}
	defer s.Close()
	var mu sync.Mutex
	heard, beenHeard := false, false
	done := make(chan struct{})
	go func() {
		defer close(done)
		for frame := range s.frames() {
			sender, knows, ok := parse(frame, nonce)
			mu.Lock()
			switch {
			case !ok || sender == end.Self:
			case sender != end.Peer:
				result.Stranger = sender
			default:
				result.Heard = max(result.Heard, len(frame)-headerLength)
				heard = result.Heard >= size
				beenHeard = beenHeard || knows
			}
			mu.Unlock()
		}
	}()
	frame := make([]byte, headerLength+size)
	copy(frame, group)
	copy(frame[6:], in.HardwareAddr)
	binary.BigEndian.PutUint16(frame[12:], etherType)
	fill(frame[headerLength:], nonce, end.Self)
	tick := time.NewTicker(sendEvery)
	defer tick.Stop()
	for left := afterwards; left > 0 && ctx.Err() == nil; {
		mu.Lock()
		if heard {
			frame[headerLength+senderAt-1] = 1
		}
		if heard && beenHeard {
			left--
		}
		mu.Unlock()
		if err := s.send(frame); err != nil && !errors.Is(err, unix.ENOBUFS) {
			mu.Lock()
			result.Error = err.Error()
			mu.Unlock()
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	s.Close()
	<-done
	return result
}

// fill writes a payload.
func fill(payload []byte, nonce uint64, self string) {
	copy(payload, magic)
	binary.BigEndian.PutUint64(payload[len(magic):], nonce)
	payload[senderAt] = byte(len(self))
	copy(payload[senderAt+1:], self)
}

// parse returns the sender of a frame of this exchange, and whether that has heard its peer.
func parse(frame []byte, nonce uint64) (sender string, knows, ok bool) {
	if len(frame) < headerLength+senderAt+1 {
		return "", false, false
	}
	payload := frame[headerLength:]
	if string(payload[:len(magic)]) != magic || binary.BigEndian.Uint64(payload[len(magic):]) != nonce {
		return "", false, false
	}
	n := int(payload[senderAt])
	if len(payload) < senderAt+1+n {
		return "", false, false
	}
	return string(payload[senderAt+1 : senderAt+1+n]), payload[senderAt-1] == 1, true
}

// socket is a packet socket on one interface.
type socket struct {
	file  *os.File
	index int
}

// openSocket opens a socket in the present network namespace. It takes frames of every
// EtherType, for those are seen before tc may redirect them, and filters.
func openSocket(index int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	s := &socket{os.NewFile(uintptr(fd), "packets"), index}
	filter, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherType, SkipFalse: 1},
		bpf.RetConstant{Val: 1 << 17},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		s.Close()
		return nil, err
	}
	program := make([]unix.SockFilter, len(filter))
	for i, f := range filter {
		program[i] = unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: index})
	}
	if err != nil {
		s.Close()
		return nil, os.NewSyscallError("packet socket", err)
	}
	return s, nil
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

func (s *socket) Close() { s.file.Close() }

// frames yields the frames until the socket is closed. The socket also sees what it sends.
func (s *socket) frames() func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		buffer := make([]byte, 1<<17)
		for {
			n, err := s.file.Read(buffer)
			if errors.Is(err, unix.ENETDOWN) {
				continue
			}
			if err != nil || !yield(buffer[:n]) {
				return
			}
		}
	}
}

func (s *socket) send(frame []byte) error {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		failed = unix.Sendto(int(fd), frame, 0, &unix.SockaddrLinklayer{Protocol: htons(etherType), Ifindex: s.index, Halen: 6})
		return !errors.Is(failed, unix.EAGAIN)
	})
	if err != nil {
		return err
	}
	return failed
}
