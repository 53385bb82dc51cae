package sshclient

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// device is an ssh server for one connection. It echoes input, and prints the command, or the
// terminal of a shell.
func device(t *testing.T, config *ssh.ServerConfig) net.Conn {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config.AddHostKey(signer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer l.Close()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, channels, requests, err := ssh.NewServerConn(conn, config)
		if err != nil {
			conn.Close()
			return
		}
		go ssh.DiscardRequests(requests)
		for c := range channels {
			channel, requests, err := c.Accept()
			if err != nil {
				return
			}
			go session(channel, requests)
		}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	terminal := ""
	for r := range requests {
		var text struct{ Value string }
		switch r.Type {
		case "pty-req":
			var pty struct {
				Term          string
				Width, Height uint32
			}
			_ = ssh.Unmarshal(r.Payload[:len(r.Payload)-12], &pty)
			size := r.Payload[4+len("xterm"):]
			terminal = fmt.Sprintf("xterm %dx%d", size[3], size[7])
			_ = r.Reply(true, nil)
		case "exec", "shell":
			_ = ssh.Unmarshal(r.Payload, &text)
			_ = r.Reply(true, nil)
			fmt.Fprintf(channel, "[%s%s]", text.Value, terminal)
			fmt.Fprint(channel.Stderr(), "complaint")
			_, _ = io.Copy(channel, channel)
			code := uint32(0)
			if text.Value == "fail" {
				code = 7
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
			return
		default:
			_ = r.Reply(false, nil)
		}
	}
}

func TestRun(t *testing.T) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "id_ed25519")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	byKey := func() *ssh.ServerConfig {
		return &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, got ssh.PublicKey) (*ssh.Permissions, error) {
			if c.User() != "admin" || !bytes.Equal(got.Marshal(), known.Marshal()) {
				return nil, errors.New("another key")
			}
			return nil, nil
		}}
	}
	byPassword := func() *ssh.ServerConfig {
		return &ssh.ServerConfig{PasswordCallback: func(_ ssh.ConnMetadata, got []byte) (*ssh.Permissions, error) {
			if string(got) != "s3cret" {
				return nil, errors.New("another password")
			}
			return nil, nil
		}}
	}
	byQuestion := func() *ssh.ServerConfig {
		return &ssh.ServerConfig{KeyboardInteractiveCallback: func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			got, err := ask("", "", []string{"Password: "}, []bool{false})
			if err != nil || len(got) != 1 || got[0] != "s3cret" {
				return nil, errors.New("another password")
			}
			return nil, nil
		}}
	}
	password := func() (string, error) { return "s3cret", nil }
	for name, c := range map[string]struct {
		server *ssh.ServerConfig
		o      Options
		code   int
		out    string
		err    string
	}{
		"a command, by key": {byKey(), Options{Keys: DefaultKeys(dir), Command: "show version"}, 0, "[show version]input", ""},
		"an exit code":      {byKey(), Options{Keys: []string{filepath.Join(dir, "missing"), file}, Command: "fail"}, 7, "[fail]input", ""},
		"a shell":           {byPassword(), Options{Password: password, Terminal: &Terminal{Name: "xterm", Width: 80, Height: 24}}, 0, "[xterm 80x24]input", ""},
		"by a question":     {byQuestion(), Options{Password: password, Command: "x"}, 0, "[x]input", ""},
		"no key":            {byKey(), Options{Command: "x"}, 0, "", "log in to R1 as admin: ssh: handshake failed"},
		"a wrong password":  {byPassword(), Options{Command: "x", Password: func() (string, error) { return "other", nil }}, 0, "", "log in to R1 as admin: ssh: handshake failed"},
	} {
		var out, errs bytes.Buffer
		c.o.User, c.o.In, c.o.Out, c.o.Err = "admin", strings.NewReader("input"), &out, &errs
		code, err := Run(device(t, c.server), "R1", c.o)
		if code != c.code || out.String() != c.out || (err == nil) != (c.err == "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%s: %d, %q, %q, %v", name, code, out.String(), errs.String(), err)
		}
	}
}
