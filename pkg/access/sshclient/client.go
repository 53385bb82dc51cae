// Package sshclient is an ssh client for machines without one: a shell or a command on a node,
// with the user's keys and agent, or a password.
package sshclient

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Options say who logs in, and to what.
type Options struct {
	User string
	// Keys are files with private keys; those that cannot be read without a passphrase are
	// skipped.
	Keys []string
	// Agent is the socket of an agent, "" for none.
	Agent string
	// Password is asked for a password; nil if there is none.
	Password func() (string, error)

	// Command is empty for a shell.
	Command  string
	In       io.Reader
	Out, Err io.Writer
	// Terminal is nil for a session without one.
	Terminal *Terminal
}

// Terminal is a terminal of a session.
type Terminal struct {
	Name          string // TERM
	Width, Height int
	// Sizes are its new sizes, until the channel is closed.
	Sizes <-chan [2]int
}

// DefaultKeys are the files that ssh looks for in a folder.
func DefaultKeys(folder string) []string {
	var out []string
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		out = append(out, filepath.Join(folder, name))
	}
	return out
}

// Run logs in over a connection and returns the exit code of the command. The host key is not
// checked: a device has another one in each Pod, and the connection comes from its sidecar.
func Run(conn net.Conn, host string, o Options) (int, error) {
	methods, done := o.methods()
	defer done()
	config := &ssh.ClientConfig{User: o.User, Auth: methods, HostKeyCallback: ssh.InsecureIgnoreHostKey()}
	c, channels, requests, err := ssh.NewClientConn(conn, host, config)
	if err != nil {
		return 0, fmt.Errorf("log in to %s as %s: %w", host, o.User, err)
	}
	client := ssh.NewClient(c, channels, requests)
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return 0, err
	}
	defer session.Close()
	session.Stdin, session.Stdout, session.Stderr = o.In, o.Out, o.Err
	if t := o.Terminal; t != nil {
		if err := session.RequestPty(t.Name, t.Height, t.Width, ssh.TerminalModes{}); err != nil {
			return 0, fmt.Errorf("ask %s for a terminal: %w", host, err)
		}
		go func() {
			for size := range t.Sizes {
				_ = session.WindowChange(size[1], size[0])
			}
		}()
	}
	if o.Command == "" {
		if err = session.Shell(); err == nil {
			err = session.Wait()
		}
	} else {
		err = session.Run(o.Command)
	}
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	switch {
	case errors.As(err, &exit):
		return exit.ExitStatus(), nil
	case errors.As(err, &missing): // some devices end a session without one
		return 0, nil
	}
	return 0, err
}

// methods are the ways to log in, in the order in which they are tried.
func (o *Options) methods() (methods []ssh.AuthMethod, done func()) {
	done = func() {}
	var signers []ssh.Signer
	if o.Agent != "" {
		if conn, err := net.Dial("unix", o.Agent); err == nil {
			done = func() { conn.Close() }
			signers, _ = agent.NewClient(conn).Signers()
		}
	}
	for _, file := range o.Keys {
		if data, err := os.ReadFile(file); err == nil {
			if signer, err := ssh.ParsePrivateKey(data); err == nil {
				signers = append(signers, signer)
			}
		}
	}
	if len(signers) > 0 {
		methods = append(methods, ssh.PublicKeys(signers...))
	}
	if o.Password != nil {
		methods = append(methods, ssh.PasswordCallback(o.Password), ssh.KeyboardInteractive(o.challenge))
	}
	return methods, done
}

// challenge answers questions for the password; some devices ask in this way only.
func (o *Options) challenge(_, _ string, questions []string, _ []bool) ([]string, error) {
	var answers []string
	for _, q := range questions {
		if !strings.Contains(strings.ToLower(q), "password") {
			return nil, fmt.Errorf("the device asks %.80q, which is no question for a password", q)
		}
		password, err := o.Password()
		if err != nil {
			return nil, err
		}
		answers = append(answers, password)
	}
	return answers, nil
}
