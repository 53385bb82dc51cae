package save

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// standIn is an ssh server in place of a device: a command line, commands, and NETCONF.
type standIn struct {
	t *testing.T
	// prompt is the first prompt, and outputs what lines print. A line that is not there is an
	// error. prompts are other prompts after lines.
	prompt  string
	banner  string
	outputs map[string]string
	prompts map[string]string
	// echo repeats what is typed, as terminals do.
	echo bool
	// netconf answers a request; old speaks version 1.0 only.
	netconf func(request string) (reply string)
	old     bool
	// hangUp ends the session at this line.
	hangUp string

	mu    sync.Mutex // guards what follows, and what netconf changes
	ports []uint16
	typed []string
}

var who = lab.Credentials{Username: "admin", Password: "secret"}

// device is the stand-in as Config sees it.
func (s *standIn) device() Device { return Device{Dial: s.dial, Login: who} }

func (s *standIn) dial(_ context.Context, port uint16) (net.Conn, error) {
	s.mu.Lock()
	s.ports = append(s.ports, port)
	s.mu.Unlock()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		defer l.Close() // not before the connection is accepted
		if conn, err := l.Accept(); err == nil {
			s.serve(conn)
		}
	}()
	return net.Dial("tcp", l.Addr().String())
}

func (s *standIn) serve(conn net.Conn) {
	defer conn.Close()
	config := &ssh.ServerConfig{
		PasswordCallback: func(c ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			if c.User() != who.Username || string(password) != who.Password {
				return nil, fmt.Errorf("not %s", password)
			}
			return nil, nil
		},
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		s.t.Error(err)
		return
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		s.t.Error(err)
		return
	}
	config.AddHostKey(signer)
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests)
	}
}

func (s *standIn) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	for r := range requests {
		var text struct{ Value string }
		switch r.Type {
		case "pty-req":
			_ = r.Reply(true, nil)
		case "shell":
			_ = r.Reply(true, nil)
			go s.shell(channel)
		case "exec":
			_ = ssh.Unmarshal(r.Payload, &text)
			_ = r.Reply(true, nil)
			out, known := s.outputs[text.Value]
			code := uint32(0)
			if !known {
				code = 1
			}
			_, _ = io.WriteString(channel, out)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
			channel.Close()
		case "subsystem":
			_ = ssh.Unmarshal(r.Payload, &text)
			ok := text.Value == "netconf" && s.netconf != nil
			_ = r.Reply(ok, nil)
			if ok {
				go s.serveNETCONF(channel)
			}
		default:
			_ = r.Reply(false, nil)
		}
	}
}

func (s *standIn) shell(channel ssh.Channel) {
	defer channel.Close()
	prompt := s.prompt
	fmt.Fprint(channel, s.banner+"\r\n"+prompt)
	lines := bufio.NewReader(channel)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		s.mu.Lock()
		s.typed = append(s.typed, line)
		s.mu.Unlock()
		if line == s.hangUp && line != "" {
			return
		}
		if s.echo {
			fmt.Fprint(channel, line+"\r\n")
		}
		out, known := s.outputs[line]
		if !known {
			out = "% Invalid input\n"
		}
		// In pieces, as from a slow device, and with a line that looks like a prompt.
		for piece := range strings.Lines(out) {
			fmt.Fprint(channel, strings.ReplaceAll(piece, "\n", "\r\n"))
			time.Sleep(time.Millisecond)
		}
		if next := s.prompts[line]; next != "" {
			prompt = next
		}
		fmt.Fprint(channel, prompt)
	}
}

func (s *standIn) serveNETCONF(channel ssh.Channel) {
	defer channel.Close()
	capabilities := "<capability>" + base10 + "</capability>"
	if !s.old {
		capabilities += "<capability>\n " + base11 + "\n</capability>"
	}
	fmt.Fprint(channel, `<?xml version="1.0"?><hello xmlns="`+netconfBase+`"><capabilities>`+capabilities+"</capabilities><session-id>4</session-id></hello>"+endOfMessage)
	// The peer's own reader serves: it is symmetrical but for the hello.
	n := &netconf{in: channel, out: bufio.NewReader(channel)}
	if _, err := n.read(); err != nil {
		return
	}
	n.chunked = !s.old
	for id := 1; ; id++ {
		request, err := n.read()
		if err != nil {
			return
		}
		s.mu.Lock()
		body := s.netconf(string(request))
		s.mu.Unlock()
		if n.chunked { // in two chunks, after a notification
			_ = n.write(`<notification xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0"/>`)
			reply := fmt.Sprintf(`<rpc-reply xmlns="%s" message-id="%d">%s</rpc-reply>`, netconfBase, id, body)
			fmt.Fprintf(channel, "\n#%d\n%s\n#%d\n%s\n##\n", 10, reply[:10], len(reply)-10, reply[10:])
			continue
		}
		_ = n.write(fmt.Sprintf(`<nc:rpc-reply xmlns:nc="%s" message-id="%d">%s</nc:rpc-reply>`, netconfBase, id, strings.ReplaceAll(strings.ReplaceAll(body, "</", "</nc:"), "<ok/>", "<nc:ok/>")))
	}
}
