package save

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// The standard ports.
const (
	sshPort     = 22
	netconfPort = 830
)

// quiet is how long a device prints nothing after its prompt: what looks like one may be a
// part of its output. A variable for the tests.
var quiet = 300 * time.Millisecond

// login logs in to a device. Its host key is new in each Pod, and the connection comes from
// its sidecar, so the key is not checked. Devices of labs are often old, so their algorithms
// are taken too, after all others.
func login(ctx context.Context, conn net.Conn, who lab.Credentials) (*ssh.Client, error) {
	answer := func(_, _ string, questions []string, _ []bool) ([]string, error) {
		out := make([]string, len(questions))
		for i := range out {
			out[i] = who.Password
		}
		return out, nil
	}
	config := &ssh.ClientConfig{
		User: who.Username, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		Auth: []ssh.AuthMethod{ssh.Password(who.Password), ssh.KeyboardInteractive(answer)},
	}
	good, old := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	config.KeyExchanges = append(good.KeyExchanges, old.KeyExchanges...)
	config.Ciphers = append(good.Ciphers, old.Ciphers...)
	config.MACs = append(good.MACs, old.MACs...)
	config.HostKeyAlgorithms = append(good.HostKeys, old.HostKeys...)
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	c, channels, requests, err := ssh.NewClientConn(conn, "device", config)
	if err != nil {
		conn.Close()
		if strings.Contains(err.Error(), "unable to authenticate") {
			return nil, fmt.Errorf("the device rejects the password of user %s", who.Username)
		}
		return nil, fmt.Errorf("ssh: %w", err)
	}
	return ssh.NewClient(c, channels, requests), nil
}

// overSSH gets a configuration by a session with the device's command line.
func overSSH(ctx context.Context, rule *kinds.SaveSSH, d Device) ([]byte, error) {
	client, err := d.ssh(ctx, rule.Port, sshPort)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	var out []byte
	if rule.Exec {
		out, err = commands(client, rule.Lines)
	} else {
		out, err = typed(ctx, client, rule)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil {
		err = complaint(rule.Fails, out)
	}
	return out, err
}

// ssh dials the device and logs in.
func (d Device) ssh(ctx context.Context, port, standard uint16) (*ssh.Client, error) {
	if port == 0 {
		port = standard
	}
	if d.Dial == nil {
		return nil, errors.New("there is no way to the device")
	}
	conn, err := d.Dial(ctx, port)
	if err != nil {
		return nil, fmt.Errorf("port %d: %w", port, err)
	}
	return login(ctx, conn, d.Login)
}

// complaint returns the line of an output that reports an error.
func complaint(pattern string, out []byte) error {
	if pattern == "" {
		return nil
	}
	fails, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(out) {
		if line = bytes.TrimSpace(line); fails.Match(line) {
			return fmt.Errorf("the device reports: %s", lastLines(string(line)))
		}
	}
	return nil
}

// commands runs each line as a command of its own.
func commands(client *ssh.Client, lines []string) (out []byte, err error) {
	for _, line := range lines {
		session, err := client.NewSession()
		if err != nil {
			return nil, err
		}
		b := &limited{left: maxConfig}
		session.Stdout, session.Stderr = b, io.Discard
		err = session.Run(line)
		session.Close()
		var missing *ssh.ExitMissingError
		if err != nil && !errors.As(err, &missing) {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		var exceeded bool
		if out, exceeded = b.read(); exceeded {
			return nil, fmt.Errorf("the configuration has more than %d bytes", maxConfig)
		}
	}
	return out, nil
}

// typed types the lines into a shell.
func typed(ctx context.Context, client *ssh.Client, rule *kinds.SaveSSH) ([]byte, error) {
	t, err := openTerminal(client)
	if err != nil {
		return nil, err
	}
	defer t.session.Close()
	if err := t.findPrompt(ctx); err != nil {
		return nil, err
	}
	var out []byte
	for i, line := range rule.Lines {
		if out, err = t.run(ctx, line); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if i < len(rule.Lines)-1 {
			if err := complaint(rule.Fails, out); err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
		}
	}
	return out, nil
}

// terminal is a shell with a terminal so wide that no line is wrapped.
type terminal struct {
	session *ssh.Session
	in      io.Writer
	out     chan []byte
	ended   chan error
	// prompt matches the last line of an output that the device has ended.
	prompt *regexp.Regexp
}

func openTerminal(client *ssh.Client) (*terminal, error) {
	session, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	t := &terminal{session: session, out: make(chan []byte, 64), ended: make(chan error, 1)}
	if t.in, err = session.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := session.RequestPty("vt100", 1000, 511, ssh.TerminalModes{ssh.ECHO: 0}); err != nil {
		return nil, fmt.Errorf("a terminal: %w", err)
	}
	if err := session.Shell(); err != nil {
		return nil, fmt.Errorf("a shell: %w", err)
	}
	go func() {
		for {
			buffer := make([]byte, 32<<10)
			n, err := out.Read(buffer)
			if n > 0 {
				t.out <- buffer[:n]
			}
			if err != nil {
				t.ended <- err
				return
			}
		}
	}()
	return t, nil
}

// anyPrompt is what the first prompt of a device looks like.
var anyPrompt = regexp.MustCompile(`^\S.{0,120}[#>$%\]] ?$`)

// findPrompt waits for the first prompt. Later ones begin alike: some commands change the end.
func (t *terminal) findPrompt(ctx context.Context) error {
	t.prompt = anyPrompt
	text, err := t.wait(ctx)
	if err != nil {
		return fmt.Errorf("waiting for the prompt: %w", err)
	}
	line := lastLine(text)
	stem := strings.TrimRight(line, "#>$%] ")
	if i := strings.IndexByte(stem, '('); i > 0 {
		stem = stem[:i]
	}
	t.prompt = regexp.MustCompile(`^[*!]?` + regexp.QuoteMeta(strings.TrimLeft(stem, "*!")) + `.{0,80}[#>$%\]] ?$`)
	return nil
}

// run types a line and returns what the device prints up to the next prompt, without the echo
// of the line.
func (t *terminal) run(ctx context.Context, line string) ([]byte, error) {
	if _, err := io.WriteString(t.in, line+"\n"); err != nil {
		return nil, err
	}
	text, err := t.wait(ctx)
	if err != nil {
		return nil, err
	}
	text = text[:len(text)-len(lastLine(text))]
	if first, rest, ok := strings.Cut(text, "\n"); ok && strings.HasSuffix(strings.TrimSpace(first), line) {
		text = rest
	}
	return []byte(text), nil
}

// wait reads until the device has printed a prompt and is quiet.
func (t *terminal) wait(ctx context.Context) (string, error) {
	var raw bytes.Buffer
	still := time.NewTimer(quiet)
	defer still.Stop()
	for {
		select {
		case part := <-t.out:
			raw.Write(part)
			if raw.Len() > maxConfig {
				return "", fmt.Errorf("the configuration has more than %d bytes", maxConfig)
			}
			still.Reset(quiet)
		case <-still.C:
			if text := plainText(raw.Bytes()); t.prompt.MatchString(lastLine(text)) {
				return text, nil
			}
			still.Reset(quiet)
		case err := <-t.ended:
			return "", fmt.Errorf("the device ends the session: %w", err)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// controls are the sequences that terminals obey (ECMA-48), and characters that move the
// cursor.
var controls = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78M]|[\x00\x07]`)

// plainText is output of a terminal as text. A line that is written over after a carriage
// return keeps what was written last.
func plainText(raw []byte) string {
	raw = controls.ReplaceAll(trimTerminal(raw), nil)
	lines := strings.Split(string(raw), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		if at := strings.LastIndexByte(line, '\r'); at >= 0 {
			line = line[at+1:]
		}
		for strings.Contains(line, "\b") {
			at := strings.IndexByte(line, '\b')
			line = line[:max(at-1, 0)] + line[at+1:]
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }
