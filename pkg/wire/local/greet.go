//go:build linux

package local

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// The greeting at a socket, one packet each:
//
//	server  nonce (32)
//	client  nonce (32), MAC (32), epoch (8), name of its Pod
//	server  MAC (32), with the descriptor of its network namespace
//
// The MACs are HMAC-SHA256 over the sender's role, both nonces and both ends. A client
// without the key gets a nonce and nothing else.

const (
	nonceLen = 32
	macLen   = sha256.Size
	maxPod   = 255
	// greetingTime bounds a greeting. It is no more than a moment unless the other process
	// gets no processor time.
	greetingTime = time.Second
)

// party is an end of a greeting.
type party struct {
	pod   string
	epoch uint64
}

// deriveKeys derives the keys, and the name of the lab's folder, from the lab's key and name.
func deriveKeys(key []byte, lab string) (folder string, k keys, err error) {
	root, err := hkdf.Extract(sha256.New, key, []byte("c9s local 1 "+lab))
	if err != nil {
		return "", k, err
	}
	expand := func(info string, n int) (b []byte) {
		if err == nil {
			b, err = hkdf.Expand(sha256.New, root, info, n)
		}
		return b
	}
	name := expand("folder", 16)
	k.name, k.greet = expand("name", 32), expand("greet", 32)
	return hex.EncodeToString(name), k, err
}

// mac authenticates one end's part. The length of each piece is fixed or written before it.
func mac(key []byte, role string, serverNonce, clientNonce []byte, client, server party) []byte {
	h := hmac.New(sha256.New, key)
	piece := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
		h.Write(b)
	}
	piece([]byte(role))
	piece(serverNonce)
	piece(clientNonce)
	for _, p := range []party{client, server} {
		piece([]byte(p.pod))
		piece(binary.BigEndian.AppendUint64(nil, p.epoch))
	}
	return h.Sum(nil)
}

var errGreeting = errors.New("the other end has not proven the lab's key")

func newNonce() []byte {
	b := make([]byte, nonceLen)
	rand.Read(b) // never fails
	return b
}

// serve answers a client: it passes the descriptor of a namespace to one that has the key.
func serve(c *net.UnixConn, key []byte, own party, namespace int) error {
	if err := c.SetDeadline(time.Now().Add(greetingTime)); err != nil {
		return err
	}
	challenge := newNonce()
	if _, err := c.Write(challenge); err != nil {
		return err
	}
	b := make([]byte, nonceLen+macLen+8+maxPod+1)
	n, err := c.Read(b)
	if err != nil {
		return err
	}
	const fixed = nonceLen + macLen + 8
	if n <= fixed || n == len(b) {
		return errGreeting
	}
	nonce, got := b[:nonceLen], b[nonceLen:nonceLen+macLen]
	client := party{pod: string(b[fixed:n]), epoch: binary.BigEndian.Uint64(b[nonceLen+macLen:])}
	if !hmac.Equal(got, mac(key, "client", challenge, nonce, client, own)) {
		return errGreeting
	}
	_, _, err = c.WriteMsgUnix(mac(key, "server", challenge, nonce, client, own), unix.UnixRights(namespace), nil)
	return err
}

// greet proves the key to a server, and returns its namespace.
func greet(c *net.UnixConn, key []byte, own, server party) (*os.File, error) {
	if err := c.SetDeadline(time.Now().Add(greetingTime)); err != nil {
		return nil, err
	}
	challenge := make([]byte, nonceLen+1)
	if n, err := c.Read(challenge); err != nil || n != nonceLen {
		return nil, errors.Join(errGreeting, err)
	}
	challenge = challenge[:nonceLen]
	nonce := newNonce()
	b := append(append([]byte(nil), nonce...), mac(key, "client", challenge, nonce, own, server)...)
	b = append(binary.BigEndian.AppendUint64(b, own.epoch), own.pod...)
	if _, err := c.Write(b); err != nil {
		return nil, err
	}
	answer, rights := make([]byte, macLen+1), make([]byte, unix.CmsgSpace(4))
	n, oob, flags, _, err := c.ReadMsgUnix(answer, rights)
	if err != nil {
		return nil, errors.Join(errGreeting, err)
	}
	file := received(rights[:oob])
	if flags&unix.MSG_CTRUNC != 0 || n != macLen || !hmac.Equal(answer[:macLen], mac(key, "server", challenge, nonce, own, server)) || file == nil {
		if file != nil {
			file.Close()
		}
		return nil, errGreeting
	}
	return file, nil
}

// received returns the one descriptor of a message, nil for none. It closes all others: there is
// room for two, since the kernel aligns them, and those without room are closed already.
func received(rights []byte) *os.File {
	messages, _ := unix.ParseSocketControlMessage(rights)
	var all []int
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			all = append(all, fds...)
		}
	}
	if len(all) != 1 {
		for _, fd := range all {
			unix.Close(fd)
		}
		return nil
	}
	unix.CloseOnExec(all[0])
	return os.NewFile(uintptr(all[0]), "netns")
}
