package xtables

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/passage"
)

// Socket options (IPT_SO_SET_REPLACE and so on; those of IPv6 have the same
// numbers).
const (
	setReplace     = 64
	setAddCounters = 65
	getInfo        = 64
	getEntries     = 65
)

const nameSize = 32

// info is struct ipt_getinfo.
type info struct {
	Name       [nameSize]byte
	ValidHooks uint32
	HookEntry  [passage.Hooks]uint32
	Underflow  [passage.Hooks]uint32
	NumEntries uint32
	Size       uint32
}

// replacement is struct ipt_replace, without the entries that follow.
type replacement struct {
	Name        [nameSize]byte
	ValidHooks  uint32
	NumEntries  uint32
	Size        uint32
	HookEntry   [passage.Hooks]uint32
	Underflow   [passage.Hooks]uint32
	NumCounters uint32
	Counters    uint64 // where the kernel puts the old entries' counters
}

// socket speaks of one family's tables in the namespace that it was made in.
type socket struct {
	family *family
	fd     int
}

func (f *family) open() (*socket, error) {
	fd, err := unix.Socket(f.domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return nil, fmt.Errorf("raw socket: %w", err)
	}
	return &socket{family: f, fd: fd}, nil
}

func (s *socket) close() { unix.Close(s.fd) }

// tables are the names of the family's tables that there are. Asking for another
// would make it.
func (f *family) tables() ([]string, error) {
	data, err := os.ReadFile(f.names)
	if os.IsNotExist(err) {
		return nil, nil
	}
	return strings.Fields(string(data)), err
}

func (s *socket) info(name string) (in info, err error) {
	copy(in.Name[:nameSize-1], name)
	err = s.get(getInfo, unsafe.Slice((*byte)(unsafe.Pointer(&in)), unsafe.Sizeof(in)))
	return in, err
}

// read gets the table that info tells of.
func (s *socket) read(name string, in info) (*table, error) {
	const head = nameSize + 8 // struct ipt_get_entries
	data := make([]byte, head+int(in.Size))
	copy(data, in.Name[:])
	binary.NativeEndian.PutUint32(data[nameSize:], in.Size)
	if err := s.get(getEntries, data); err != nil {
		return nil, err
	}
	t := &table{family: s.family, name: name, hooks: in.ValidHooks, first: in.HookEntry, policy: in.Underflow}
	return t, t.parse(data[head:])
}

// write replaces a table, and gives the entries that stay their counters back. It
// fails with EAGAIN where somebody else was faster.
func (s *socket) write(t *table) error {
	read := 0
	for _, e := range t.entries {
		if !e.added {
			read++
		}
	}
	block, origin, err := t.layout()
	if err != nil {
		return err
	}
	old := make([]byte, read*countersSize)
	r := replacement{
		ValidHooks: t.hooks, NumEntries: uint32(len(origin)), Size: uint32(len(block)),
		HookEntry: t.first, Underflow: t.policy, NumCounters: uint32(read),
		Counters: uint64(uintptr(unsafe.Pointer(&old[0]))),
	}
	copy(r.Name[:nameSize-1], t.name)
	var request bytes.Buffer
	if err := binary.Write(&request, binary.NativeEndian, &r); err != nil {
		return err
	}
	request.Write(block)
	if err := s.set(setReplace, request.Bytes(), old); err != nil {
		return err
	}
	counters := make([]byte, nameSize+8, nameSize+8+len(origin)*countersSize) // struct xt_counters_info
	copy(counters, t.name)
	binary.NativeEndian.PutUint32(counters[nameSize:], uint32(len(origin)))
	for _, n := range origin {
		if n < 0 {
			counters = append(counters, make([]byte, countersSize)...)
			continue
		}
		counters = append(counters, old[n*countersSize:(n+1)*countersSize]...)
	}
	return s.set(setAddCounters, counters, nil)
}

func (s *socket) get(option int, data []byte) error {
	size := uint32(len(data))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), uintptr(s.family.level), uintptr(option), uintptr(unsafe.Pointer(&data[0])), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return e
	}
	return nil
}

// set keeps what the data points to alive.
func (s *socket) set(option int, data, pointed []byte) error {
	_, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(s.fd), uintptr(s.family.level), uintptr(option), uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), 0)
	runtime.KeepAlive(pointed)
	if e != 0 {
		return e
	}
	return nil
}
