package podnet

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// sshServer accepts logins of admin in a network namespace, by password or by questions.
func sshServer(t *testing.T, ns, address, password string, questions bool) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	check := func(c ssh.ConnMetadata, given string) (*ssh.Permissions, error) {
		if c.User() == "admin" && given == password {
			return nil, nil
		}
		return nil, errors.New("denied")
	}
	config := &ssh.ServerConfig{}
	if questions {
		config.KeyboardInteractiveCallback = func(c ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			answers, err := ask("", "", []string{"Password: "}, []bool{false})
			if err != nil || len(answers) != 1 {
				return nil, errors.New("denied")
			}
			return check(c, answers[0])
		}
	} else {
		config.PasswordCallback = func(c ssh.ConnMetadata, given []byte) (*ssh.Permissions, error) { return check(c, string(given)) }
	}
	config.AddHostKey(signer)
	var l net.Listener
	if err := withNS(ns, func() (err error) { l, err = net.Listen("tcp", address); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				c, _, requests, err := ssh.NewServerConn(conn, config)
				if err == nil {
					go ssh.DiscardRequests(requests)
					_ = c.Wait()
				}
			}()
		}
	}()
}

// TestLogin: the sidecar logs in to the management address, for programs of the Pod alone.
func TestLogin(t *testing.T) {
	c := newCluster(t)
	p := c.newPod("r1", mgmtDoc(11))
	password := filepath.Join(p.dir, "password")
	p.writeJSON("plan/manifest.json", contract.Manifest{Version: contract.ManifestVersion, Pod: p.name, Nodes: []contract.ManifestNode{
		{Name: p.name, ID: p.name, Login: &contract.SSHLogin{Port: 22, Username: "admin", PasswordFile: password}},
		{Name: "questions", ID: "questions", Login: &contract.SSHLogin{Port: 2022, Username: "admin", PasswordFile: password}},
		{Name: "silent", ID: "silent", Login: &contract.SSHLogin{Port: 2023, Username: "admin"}},
		{Name: "other", ID: "other"},
	}})
	p.start()
	p.waitStarted()
	config := p.config()
	login := func(id string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := api.Login(ctx, config.state(contract.SocketFile), id); err != nil {
			return err.Error()
		}
		return ""
	}
	write := func(text string) {
		if err := os.WriteFile(password, []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if got := login("r1"); !strings.Contains(got, "ssh: the password: ") || !strings.Contains(got, "no such file") {
		t.Errorf("without the file: %q", got)
	}
	write("wrong\n")
	if got := login("r1"); !strings.Contains(got, "ssh: port 22: ") || !strings.Contains(got, "refused") {
		t.Errorf("without a server: %q", got)
	}
	mgmt := p.doc.Mgmt.IPv4.Addr().String()
	sshServer(t, p.ns, mgmt+":22", "secret", false)
	sshServer(t, p.ns, mgmt+":2022", "secret", true)
	if got := login("r1"); !strings.Contains(got, "ssh: port 22, user admin: ") || strings.Contains(got, "wrong") {
		t.Errorf("with a wrong password: %q", got)
	}
	if err := os.Remove(password); err != nil {
		t.Fatal(err)
	}
	write("secret\n")
	if a, b := login("r1"), login("questions"); a != "" || b != "" {
		t.Errorf("the login fails: %q, %q", a, b)
	}
	for _, id := range []string{"other", "gone", ""} {
		if got := login(id); got != "404 page not found" {
			t.Errorf("node %q: %q", id, got)
		}
	}
	if code, _, err := p.get(api.PathLogin + "?node=r1"); err != nil || code != 404 {
		t.Errorf("from the network: %d, %v", code, err)
	}
	log, err := os.ReadFile(p.log.Name())
	if err != nil || strings.Contains(string(log), "secret") {
		t.Errorf("the log has the password: %v", err)
	}
	var l net.Listener
	if err := withNS(p.ns, func() (err error) { l, err = net.Listen("tcp", mgmt+":2023"); return err }); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := login("silent"); !strings.Contains(got, "no answer in time") {
		t.Errorf("a server that says nothing: %q", got)
	}
}
