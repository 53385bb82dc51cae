package compile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// TestPathsAreCleanedBeforeTheyAreJudged has sources of binds and devices that name an
// engine's socket, or everything, in some disguise. None may reach the lab.
func TestPathsAreCleanedBeforeTheyAreJudged(t *testing.T) {
	for _, tt := range []struct {
		field string
		code  diag.Code
	}{
		{`binds: ["/dev/../run/k3s/containerd:/x"]`, CodeSocket},
		{`binds: ["/dev/../run/k3s/containerd/containerd.sock:/x"]`, CodeSocket},
		{`binds: ["/proc/../var/run:/x"]`, CodeSocket},
		{`binds: ["/sys/.././run//containerd/:/x"]`, CodeSocket},
		{`binds: ["/run/crio/crio.sock:/x"]`, CodeSocket},
		{`binds: ["/run/cri-dockerd.sock:/x"]`, CodeSocket},
		{`binds: ["/run/podman:/x"]`, CodeSocket},
		{`binds: ["/run/user/1000/podman/podman.sock:/x"]`, CodeSocket},
		{`binds: ["/var/run/docker.sock:/x"]`, CodeSocket},
		{`binds: ["/var/snap/microk8s/common/run/containerd.sock:/x"]`, CodeSocket},
		{`binds: ["/home/u/.docker/run/docker.sock:/x"]`, CodeSocket},
		{`binds: ["/run/buildkit/buildkitd.sock:/x"]`, CodeSocket},
		{`binds: ["/run/k0s/status.sock:/x"]`, CodeSocket},
		{`binds: ["/:/host"]`, CodeWholeDisk},
		{`binds: ["/dev/..:/host"]`, CodeWholeDisk},
		{`binds: ["//:/host:ro"]`, CodeWholeDisk},
		{`binds: ["/proc/1/root:/host"]`, CodeWholeDisk},
		{`binds: ["/proc/1/root/run/k3s/containerd:/x"]`, CodeWholeDisk},
		{`binds: ["/dev/../proc/self/cwd/../etc:/x"]`, CodeWholeDisk},
		{`binds: ["/proc/thread-self/fd/3:/x"]`, CodeWholeDisk},
		{`binds: ["/dev/fd/7:/x"]`, CodeWholeDisk},
		{`binds: ["/dev/stdin:/x"]`, CodeWholeDisk},
		{`binds: ["/dev/stdout:/x"]`, CodeWholeDisk},
		{`devices: ["/dev/fd/7:/dev/x"]`, "bad-value"},
		{`devices: ["/dev/stderr:/dev/x"]`, "bad-value"},
		{`devices: ["/dev/../run/containerd/containerd.sock"]`, "bad-value"},
		{`devices: ["/dev/.."]`, "bad-value"},
		{`devices: ["/etc"]`, "bad-value"},
		{`devices: ["/run/docker.sock:/dev/x"]`, "bad-value"},
	} {
		l, diags := compileText(t, "name: t\ntopology:\n  nodes:\n    a:\n      kind: linux\n      image: i\n      privileged: false\n      "+tt.field+"\n", nil, Options{})
		if !slices.ContainsFunc(diags, func(d diag.Diagnostic) bool {
			return d.Severity == diag.Error && d.Code == tt.code && d.Line == 8
		}) {
			t.Errorf("%s: want the error %s, got %v", tt.field, tt.code, diags)
		}
		if n := l.Node("a"); len(n.Mounts)+len(n.Devices) > 0 {
			t.Errorf("%s: the node gets %v %v", tt.field, n.Mounts, n.Devices)
		}
	}
	l := compileClean(t, "name: t\ntopology:\n  nodes:\n    a: {kind: linux, image: i, binds: [\"/dev/../dev/net:/x\"], devices: [\"/dev/./net/../kvm:/dev//kvm:rw\"]}\n", nil, Options{})
	if n := l.Node("a"); n.Mounts[0].HostPath != "/dev/net" || n.Devices[0] != "/dev/kvm:/dev/kvm:rw" {
		t.Errorf("%+v %v", n.Mounts[0], n.Devices)
	}
}

// TestNamesAreWhatTheyAre has names that would be more than a name in /etc/hosts, in a
// label, on a command line or on a terminal.
func TestNamesAreWhatTheyAre(t *testing.T) {
	const node = "topology:\n  nodes:\n    a: {kind: linux, image: i"
	for _, text := range []string{
		"name: t\n" + node + `, aliases: ["x\n10.0.0.1 registry"]}`,
		"name: t\n" + node + `, aliases: ["# END c9s: x"]}`,
		"name: t\n" + node + `, aliases: ["a b"]}`,
		"name: t\n" + node + `, aliases: [""]}`,
		"name: t\n" + node + `, aliases: ["-rf"]}`,
		"name: t\n" + node + `, hostname: "h\nx"}`,
		"name: t\n" + node + `, hostname: "h x"}`,
		"name: t\n" + node + `, hostname: "\e]0;x\a"}`,
		"name: t\n" + node + `, dns: {search: ["a\u001bb"]}}`,
		"name: t\n" + node + `, dns: {options: ["a\u202eb"]}}`,
		"name: t\n" + node + `, certificate: {issue: true, sans: ["a\nb"]}}`,
		"name: t\nprefix: \"p\\nq\"\n" + node + "}",
		"name: t\nprefix: \"p q\"\n" + node + "}",
		"name: t\ntopology:\n  nodes:\n    \"a\\e[2J\": {kind: linux, image: i}",
		"name: t\ntopology:\n  nodes:\n    \"a\\u202eb\": {kind: linux, image: i}",
		"name: t\ntopology:\n  nodes:\n    \"a\\x9bb\": {kind: linux, image: i}",
		"name: t\ntopology:\n  nodes:\n    \"$(id)\": {kind: linux, image: i}",
		"name: t\ntopology:\n  nodes:\n    \"-n\": {kind: linux, image: i}",
		"name: t\ntopology:\n  nodes:\n    \"..\": {kind: linux, image: i}",
		"name: t\ntopology:\n  nodes:\n    \"b\\e[2J\": {kind: bridge}",
		"name: t\n" + node + "}\n  links: [{endpoints: [\"a:e\\e[2J1\", \"a:eth2\"]}]",
		"name: t\n" + node + "}\n  links: [{endpoints: [\"a:eth1\", \"host:x\\ny\"]}]",
	} {
		_, diags := compileText(t, text+"\n", nil, Options{})
		if !slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error && d.Line > 0 }) {
			t.Errorf("%s\ncompiles: %v", text, diags)
		}
		for _, d := range diags {
			if strings.ContainsFunc(d.Message, func(r rune) bool { return !isPrintable(string(r)) }) {
				t.Errorf("%s\nthe message %q does not print", text, d.Message)
			}
		}
	}
	l := compileClean(t, "name: t\nprefix: p\ntopology:\n  nodes:\n    R_1.x: {kind: linux, image: i, hostname: core-1.example.net, aliases: [gw, Core.example.net], dns: {search: [example.net]}}\n    br0|one: {kind: bridge}\n", nil, Options{})
	if n := l.Node("R_1.x"); len(n.Aliases) != 2 || n.Hostname != "core-1.example.net" || n.LongName != "p-t-R_1.x" {
		t.Errorf("%+v", n)
	}
}

// TestEnvFileBomb has an env-file whose last variable would hold 2^60 letters.
func TestEnvFileBomb(t *testing.T) {
	text := "A0=xxxxxxxxxxxxxxxx\n"
	for i := range 60 {
		text += fmt.Sprintf("A%d=${A%d}$A%d\n", i+1, i, i)
	}
	_, diags := compileText(t, "name: t\ntopology:\n  nodes:\n    a: {kind: linux, image: i, env-files: [e]}\n", map[string]string{"e": text}, Options{})
	if !slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Code == CodeFileTooLarge }) {
		t.Error(diags)
	}
	l := compileClean(t, "name: t\ntopology:\n  nodes:\n    a: {kind: linux, image: i, env-files: [e]}\n", map[string]string{"e": "A=1\nexport B=\"${A}2\nthree\"\nC: $B\n"}, Options{})
	if env := l.Node("a").Env; env["B"] != "12\nthree" || env["C"] != "12\nthree" {
		t.Errorf("%q", env)
	}
}
