package kinds

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/c9s-lab/c9s/pkg/lab"
)

func files(pairs ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return out
}

func TestLoadAddsAndOverrides(t *testing.T) {
	c, problems := Load(Builtin(), files(
		"acme.yaml", "name: acme_router\naliases: [acme]\nextends: _acme\nstartup: {default: acme.cfg}\n",
		"_acme.yaml", "name: _acme\nextends: juniper_vmx\ncredentials: {username: root}\ncontainer:\n  env: {PASSWORD: null, ACME: 1}\n",
		"linux.yaml", "name: linux\nextends: linux\nstopSignal: SIGTERM\n",
		"templates/acme.cfg", "hello",
	), "kinds")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	acme, ok := c.Lookup("ACME")
	if !ok || acme.Name != "acme_router" || !acme.VM || slices.Contains(acme.Aliases, "vr-vmx") {
		t.Fatalf("%+v", acme)
	}
	if acme.Credentials.Username != "root" || acme.Credentials.Password != "admin@123" {
		t.Errorf("credentials %v", acme.Credentials)
	}
	env := acme.Container.Env
	if _, there := env["PASSWORD"]; there || env["ACME"] != "1" || env["CONNECTION_MODE"] != "tc" {
		t.Errorf("env %v", env)
	}
	if linux, _, _ := acme.MapInterface("ge-0/0/1", &lab.Node{}); linux != "eth2" {
		t.Errorf("ge-0/0/1 became %s", linux)
	}
	if text, err := c.Template("templates/acme.cfg"); err != nil || string(text) != "hello" {
		t.Errorf("template %q, %v", text, err)
	}
	if _, err := c.Template("templates/ceos.cfg"); err != nil {
		t.Error(err)
	}
	linux, _ := c.Lookup("linux")
	before, _ := Builtin().Lookup("linux")
	if linux.StopSignal != "SIGTERM" || linux.LinkApplyMode != "live" || before.StopSignal != "SIGKILL" {
		t.Errorf("linux stops with %s, before with %s", linux.StopSignal, before.StopSignal)
	}
	if len(c.All()) != 64 || len(c.Names()) != 101 {
		t.Errorf("%d kinds, %d names", len(c.All()), len(c.Names()))
	}
}

func TestLoadReportsProblems(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"unknown field", "name: a\ndescription: x\ncontainer:\n  enw: {}\n", "kinds/a.yaml:4:3: error: unknown key \"enw\" in container"},
		{"wrong type", "name: a\nvm: perhaps\n", "kinds/a.yaml:2:5: error: vm must be true or false, not the text \"perhaps\""},
		{"syntax", "name: a\n  b: c\n", "kinds/a.yaml:2:3: error: mapping values are not allowed"},
		{"no name", "description: x\n", "kinds/a.yaml:1:1: error: the kind has no name"},
		{"empty", "", "kinds/a.yaml: error: the file holds no kind"},
		{"absent parent", "name: a\nextends: nothing\n", "kinds/a.yaml:1:1: error: extends nothing, which is not in the catalogue"},
		{"loop", "name: a\nextends: b\n", "extends itself"},
		{"bad pattern", "name: a\ninterfaces: {match: '('}\n", "interfaces.match: error parsing regexp"},
		{"no port", "name: a\ninterfaces: {match: 'x'}\n", "needs a group named port"},
		{"unknown group", "name: a\ninterfaces: {match: '(?P<port>x)', name: 'e{slot}'}\n", "{slot} is not a group"},
		{"open bracket", "name: a\ninterfaces: {match: '(?P<port>x)', name: 'e[-{port}'}\n", "[ without ]"},
		{"unknown count", "name: a\ninterfaces: {match: '(?P<port>x)', count: apples}\n", "apples"},
		{"bad word", "name: a\ndescription: x\nlinkApplyMode: sometimes\n", "kinds/a.yaml:3:16: error: linkApplyMode: \"sometimes\" is none of live, restart, recreate"},
		{"absent template", "name: a\nstartup:\n  file: x\n  default: nope.cfg\n", "there is no file templates/nope.cfg"},
		{"relative mount", "name: a\ncontainer: {mounts: [{path: x, target: y}]}\n", "absolute target"},
		{"file outside", "name: a\nfiles: [{path: ../x}]\n", "not a path in the node's folder"},
		{"two contents", "name: a\nfiles: [{path: x, dir: true, content: y}]\n", "more than one of"},
		{"empty step", "name: a\nsteps: [{name: x}]\n", "step 1 needs one of"},
		{"taken name", "name: a\naliases: [srl]\n", "are both called srl"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := files("a.yaml", tt.file)
			if tt.name == "loop" {
				dir["b.yaml"] = &fstest.MapFile{Data: []byte("name: b\nextends: a\n")}
			}
			c, problems := Load(Builtin(), dir, "kinds")
			if c != nil || len(problems) == 0 {
				t.Fatalf("%v, %v", c, problems)
			}
			if got := fmt.Sprint(problems); !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
			for _, d := range problems {
				if d.Code != CodeKindFile || !strings.HasPrefix(d.File, "kinds/") && d.File != "" {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}

func TestLoadDirWithoutKinds(t *testing.T) {
	if c, problems := LoadDir(Builtin(), t.TempDir()); c != nil || len(problems) != 1 {
		t.Errorf("%v, %v", c, problems)
	}
}
