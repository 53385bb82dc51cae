package cluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kubeconfig is one with the context "here", for a server.
func kubeconfig(server string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: here, context: {cluster: c, user: u, namespace: team-a}}]
current-context: here
`, server)
}

func apiServer(t *testing.T, code int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintln(w, `{"major":"1","minor":"31","gitVersion":"v1.31.0"}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// gone is the address of a server that has ended.
func gone(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	return s.URL
}

func TestConnect(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, c := range map[string]struct {
		config, context string
		err             string
	}{
		"works":           {kubeconfig(apiServer(t, http.StatusOK)), "", ""},
		"empty":           {"", "", "set KUBECONFIG or --kubeconfig"},
		"no YAML":         {"{", "", "reading the kubeconfig"},
		"no such context": {kubeconfig(apiServer(t, http.StatusOK)), "there", `context "there" does not exist`},
		"unreachable":     {kubeconfig(gone(t)), "", `(context "here") is unreachable`},
		"unknown user":    {kubeconfig(apiServer(t, http.StatusUnauthorized)), "", `rejected your credentials (context "here"): log in again`},
		"something else":  {kubeconfig(apiServer(t, http.StatusBadGateway)), "", "asking the API server at"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(file, []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			client, err := Connect(t.Context(), Target{Kubeconfig: file, Context: c.context})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if client.Context != "here" || client.Namespace != "team-a" {
				t.Errorf("context %q, namespace %q", client.Context, client.Namespace)
			}
		})
	}
}
