package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"

	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// The numbers of SOCKS5 (RFC 1928).
const (
	socksVersion = 5

	methodNone         = 0x00
	methodUnacceptable = 0xff

	commandConnect = 1

	addressIPv4 = 1
	addressName = 3
	addressIPv6 = 4

	replySucceeded         = 0
	replyFailed            = 1
	replyNotAllowed        = 2
	replyHostUnreachable   = 4
	replyRefused           = 5
	replyExpired           = 6
	replyCommandUnknown    = 7
	replyAddressTypeNeeded = 8
)

// socks serves one client.
func socks(ctx context.Context, client *peeked, dial Dial) {
	host, port, reply := handshake(client)
	if reply == silent {
		return
	}
	if reply != replySucceeded {
		answer(client, reply)
		return
	}
	node, err := dial(ctx, host, port)
	if err != nil {
		answer(client, replyTo(err))
		return
	}
	answer(client, replySucceeded)
	join(client, node)
}

// silent stands for a client that gets no answer.
const silent = -1

// handshake reads what a client asks for.
func handshake(client io.ReadWriter) (host string, port uint16, reply int) {
	var head [4]byte
	if _, err := io.ReadFull(client, head[:2]); err != nil || head[0] != socksVersion {
		return "", 0, silent
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(client, methods); err != nil {
		return "", 0, silent
	}
	method := byte(methodUnacceptable)
	for _, m := range methods {
		if m == methodNone {
			method = methodNone
		}
	}
	if _, err := client.Write([]byte{socksVersion, method}); err != nil || method != methodNone {
		return "", 0, silent
	}
	if _, err := io.ReadFull(client, head[:]); err != nil || head[0] != socksVersion {
		return "", 0, silent
	}
	size := 0
	switch head[3] {
	case addressIPv4:
		size = 4
	case addressIPv6:
		size = 16
	case addressName:
		var length [1]byte
		if _, err := io.ReadFull(client, length[:]); err != nil {
			return "", 0, silent
		}
		size = int(length[0])
	default:
		return "", 0, replyAddressTypeNeeded
	}
	rest := make([]byte, size+2)
	if _, err := io.ReadFull(client, rest); err != nil {
		return "", 0, silent
	}
	if head[1] != commandConnect {
		return "", 0, replyCommandUnknown
	}
	host, port = string(rest[:size]), binary.BigEndian.Uint16(rest[size:])
	if head[3] != addressName {
		a, _ := netip.AddrFromSlice(rest[:size])
		host = a.Unmap().String()
	}
	return host, port, replySucceeded
}

// answer sends a reply. The bound address in it is none.
func answer(client net.Conn, reply int) {
	_, _ = client.Write([]byte{socksVersion, byte(reply), 0, addressIPv4, 0, 0, 0, 0, 0, 0})
}

func replyTo(err error) int {
	var e *tunnel.DialError
	if errors.As(err, &e) {
		switch e.Reason {
		case tunnel.Refused:
			return replyRefused
		case tunnel.TimedOut:
			return replyExpired
		case tunnel.Unreachable:
			return replyHostUnreachable
		case tunnel.Denied:
			return replyNotAllowed
		}
	}
	return replyFailed
}
