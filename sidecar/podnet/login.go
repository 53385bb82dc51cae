package podnet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/c9s-lab/c9s/internal/foreign"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/tunnel"
	"github.com/c9s-lab/c9s/sidecar/dial"
)

const (
	// loginPatience is how long a login may take.
	loginPatience = 15 * time.Second
	// logins is how many are under way at a time: a Pod has a few nodes, each with one probe.
	logins = 4
	// maxPassword is the size of a password in bytes.
	maxPassword = 4 << 10
)

// serveLogin logs in to a node of this Pod for its readiness probe. Only the Pod's own programs
// can ask for it.
func (s *sidecar) serveLogin(w http.ResponseWriter, r *http.Request) {
	login := loginOf(s.manifest(), r.URL.Query().Get("node"))
	if login == nil || !fromLocal(r) {
		http.NotFound(w, r)
		return
	}
	select {
	case s.logins <- struct{}{}:
		defer func() { <-s.logins }()
	default:
		http.Error(w, "too many logins are under way", http.StatusServiceUnavailable)
		return
	}
	controller := http.NewResponseController(w)
	_ = controller.SetWriteDeadline(time.Now().Add(loginPatience + 5*time.Second))
	ctx, cancel := context.WithTimeout(r.Context(), loginPatience)
	defer cancel()
	if err := s.logIn(ctx, login); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func loginOf(m *contract.Manifest, id string) *contract.SSHLogin {
	for _, n := range m.Nodes {
		if n.ID == id {
			return n.Login
		}
	}
	return nil
}

// logIn connects to the management address as users do.
func (s *sidecar) logIn(ctx context.Context, login *contract.SSHLogin) error {
	password, err := readPassword(login.PasswordFile)
	if err != nil {
		return err
	}
	v := s.look()
	if v.doc == nil {
		return errors.New("links.json has not been applied yet")
	}
	dialer, err := dial.New(s.cfg.Device, s.own, v.doc.Mgmt)
	if err != nil {
		return err
	}
	defer dialer.Close()
	conn, err := dialer.Dial(ctx, tunnel.Target{Network: tunnel.TCP, Port: uint16(login.Port)})
	if err != nil {
		return fmt.Errorf("ssh: port %d: %w", login.Port, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	config := &ssh.ClientConfig{
		User: login.Username,
		Auth: []ssh.AuthMethod{ssh.Password(password), ssh.KeyboardInteractive(func(_, _ string, questions []string, _ []bool) ([]string, error) {
			answers := make([]string, len(questions))
			for i := range answers {
				answers[i] = password
			}
			return answers, nil
		})},
		// The connection does not leave the Pod.
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	}
	client, channels, requests, err := ssh.NewClientConn(conn, "node", config)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("no answer in time")
		}
		return fmt.Errorf("ssh: port %d, user %s: %w", login.Port, login.Username, err)
	}
	ssh.NewClient(client, channels, requests).Close()
	return nil
}

// readPassword reads a password; the line break at the end of a file is none of it.
func readPassword(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("ssh: the password: %w", err)
	}
	defer f.Close()
	text, err := foreign.Read(f, maxPassword)
	if err != nil {
		return "", fmt.Errorf("ssh: the password: %w", err)
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}
