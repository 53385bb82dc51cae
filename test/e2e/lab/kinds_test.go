package lab

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// kindsTopology has a node of each kind whose image cannot be had here. The stand-in is started
// as each kind's own program is: where the kind leaves that to the image, entrypoint names it.
const kindsTopology = `name: kinds
topology:
  defaults: {image: "ghcr.io/srl-labs/network-multitool:latest"}
  nodes:
    srl:
      kind: nokia_srlinux
      env: {STANDIN: nokia_srlinux}
      binds:
      - standin:/opt/srlinux/bin/sr_linux
      - standin:/opt/srlinux/bin/sr_cli
      - standin:/usr/local/bin/sudo
      - standin:/usr/local/bin/su
    ceos:
      kind: arista_ceos
      env: {STANDIN: arista_ceos}
      entrypoint: /usr/bin/env # in place of this image's, which real ones do not have
      binds: ["standin:/sbin/init", "standin:/usr/local/bin/Cli"]
    xrd:
      kind: cisco_xrd
      env: {STANDIN: cisco_xrd}
      entrypoint: /usr/sbin/init
      binds: ["standin:/usr/sbin/init"]
    crpd:
      kind: juniper_crpd
      env: {STANDIN: juniper_crpd}
      entrypoint: /sbin/runit-init.sh
      binds: ["standin:/sbin/runit-init.sh"]
    srsim:
      kind: nokia_srsim
      license: license.txt
      env: {STANDIN: nokia_srsim}
      entrypoint: /opt/nokia/both
      binds: ["standin:/opt/nokia/both"]
    sonic:
      kind: sonic-vs
      binds: ["standin:/usr/local/bin/supervisord", "standin:/usr/local/bin/supervisorctl"]
  links:
    - endpoints: ["srl:ethernet-1/1", "ceos:eth1"]
    - endpoints: ["xrd:Gi0-0-0-0", "crpd:eth1"]
    - endpoints: ["srsim:1/1/c1/1", "sonic:eth1"]
`

// TestKindsInsist: the Pod of each kind has what the kind's programs need when they start.
func TestKindsInsist(t *testing.T) {
	l := written(t, "kinds", map[string]string{"lab.clab.yml": kindsTopology, "license.txt": "licence of the test\n"})
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(filepath.Dir(l.topo), "standin"), "./standin")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		for _, node := range []string{"srl", "ceos", "xrd", "crpd", "srsim", "sonic"} {
			if out, _ := l.try(context.Background(), "logs", node, "-n", l.ns); t.Failed() {
				t.Logf("%s: %s", node, out)
			}
		}
	})
	began := time.Now()
	l.deploy(t)
	t.Logf("six kinds were ready after %s", time.Since(began).Round(100*time.Millisecond))
	for node, kind := range map[string]string{"srl": "nokia_srlinux", "ceos": "arista_ceos", "xrd": "cisco_xrd", "crpd": "juniper_crpd", "srsim": "nokia_srsim"} {
		if log := l.c9s(t, "logs", node, "-n", l.ns); !strings.Contains(log, kind+": all of ") {
			t.Errorf("%s: %s", node, log)
		}
		if n := l.status(t).node(node); n.Restarts != 0 {
			t.Errorf("%s was restarted %d times", node, n.Restarts)
		}
	}
	// What is done in the devices once they run.
	for _, c := range [][3]string{
		{"srl", "/etc/opt/srlinux/config.json", "clab-profile"},
		{"ceos", "/mnt/flash/typed", "interface Management0"},
		{"sonic", "/tmp/supervisord", "all needs are met"},
		{"sonic", "/tmp/supervisorctl", "start bgpd"},
	} {
		l.eventually(t, c[0], c[2], "cat", c[1])
	}
	// SR Linux has its management in a namespace of its own.
	address := l.forward(t, "srl:80")
	testcluster.Eventually(t, patience, "the web server of srl", func() error {
		response, err := http.Get("http://" + address + "/")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err == nil && string(text) != "c9s test host\n" {
			err = fmt.Errorf("it says %q", text)
		}
		return err
	})
	l.eventually(t, "crpd", "c9s test host", "curl", "-sS", "--max-time", "5", "http://srl/")
	// They do insist: no kind's container is another's.
	for node, other := range map[string]string{"crpd": "nokia_srsim", "srl": "juniper_crpd", "ceos": "cisco_xrd", "xrd": "arista_ceos"} {
		program := map[string]string{"crpd": "/sbin/runit-init.sh", "srl": "/opt/srlinux/bin/sr_linux", "ceos": "/sbin/init", "xrd": "/usr/sbin/init"}[node]
		out, err := l.in(t.Context(), node, "env", "STANDIN="+other, program, "--once")
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.ExitCode() != 1 || !strings.Contains(out, other+": ") {
			t.Errorf("%s in the container of %s: %v: %s", other, node, err, out)
		}
	}
}
