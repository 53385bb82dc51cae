package link

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolValue is struct ethtool_value (linux/ethtool.h).
type ethtoolValue struct{ cmd, data uint32 }

type ifreqData struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// TxChecksumOff disables checksum offload for what the interface sends, as containerlab
// does. Many network operating systems read raw frames and drop those whose checksum is
// left to hardware.
func TxChecksumOff(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("ethtool socket: %w", err)
	}
	defer unix.Close(fd)
	value := ethtoolValue{cmd: unix.ETHTOOL_STXCSUM}
	req := ifreqData{data: unsafe.Pointer(&value)}
	copy(req.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	if errno != 0 && errno != unix.EOPNOTSUPP {
		return fmt.Errorf("checksum offload of %s off: %w", name, errno)
	}
	return nil
}
