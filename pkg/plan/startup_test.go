package plan

import (
	"strings"
	"testing"
	"text/template"

	"github.com/c9s-lab/c9s/pkg/lab"
)

func TestStartupConfig(t *testing.T) {
	const template = "host {{ .ShortName }} in {{ .Env.SITE }}: $SHELL_SITE ${SHELL_SITE} $SITE $HOME ${OTHER:-none} $1 $$\n"
	for _, tt := range []struct {
		kind, name, text, path string
		want                   string // "" for a file of its own
		seed                   bool
	}{
		{"juniper_vmx", "a.cfg", template, "config/startup-config.cfg", "host n1 in fra: ams ams $SITE $HOME none $1 $\n", true},
		{"juniper_vmx", "a.partial.cfg", "x\n", "config/startup-config.cfg", "", true},
		{"dell_sonic", "a.json", "{}", "config/config_db.json", "", true},
		{"mikrotik_ros", "a.rsc", "/ip", "ftpboot/config.auto.rsc", "", true},
		{"arrcus_arcos", "a.cfg", template, "startup.cfg", "", false},
		{"nokia_sros", "a.cfg", template, "tftpboot/config.txt", "host n1 in fra: ams ams $SITE $HOME none $1 $\n", true},
		{"nokia_srlinux", "a.json", "{\"a\": \"{{ .ShortName }}\"}", "config/config.json", "{\"a\": \"n1\"}", true},
		{"cisco_sdwan", "a.YML", template, "config/cloud-init.yaml", "", true},
		{"cisco_sdwan", "a.xml", template, "config/zcloud.xml", "", true},
		{"cisco_iol", "a.cfg", "hostname {{ .Hostname }} $SITE\nend\n", "boot_config.txt", "hostname n1 $SITE\nend\n", false},
		{"6wind_vsr", "a.cli", template, "init-config.cli", template + "/ vrf main ssh-server\n", false},
		{"fdio_vpp", "a.yaml", "x", "config/vpp/vppcfg.yaml", "", true},
		{"ciena_saos", "my.partial.cfg", "x", "config/my.partial.cfg", "", true},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			l := testLab("t")
			n := testNode(l, "n1", tt.kind, 1)
			n.Env = map[string]string{"SITE": "fra"}
			if tt.kind == "ciena_saos" {
				n.Type = "5162"
			}
			n.License = testFile(l, "lic", "")
			n.StartupConfig = &lab.Config{Name: tt.name, Partial: strings.Contains(tt.name, ".partial"), File: *testFile(l, tt.name, tt.text), Env: map[string]string{"SHELL_SITE": "ams"}}
			for _, enforced := range []bool{false, true} {
				n.EnforceStartupConfig = enforced
				p := planOf(t, l)
				f := fileOf(p, tt.path)
				if f == nil {
					t.Fatalf("no file %s: %v", tt.path, p.Diagnostics)
				}
				if tt.want == "" && (f.Ref == nil || f.Content != nil) || tt.want != "" && string(f.Content) != tt.want {
					t.Errorf("content %q (ref %v), want %q", f.Content, f.Ref, tt.want)
				}
				if f.Seed != (tt.seed && !enforced) {
					t.Errorf("seed %v with enforce %v", f.Seed, enforced)
				}
			}
		})
	}
}

func TestSuppressedStartupConfig(t *testing.T) {
	for kind, path := range map[string]string{
		"arista_ceos": "flash/startup-config", "cisco_xrd": "first-boot.cfg", "nokia_srsim": "A/config/cf3/config.cfg",
	} {
		l := testLab("t")
		n := testNode(l, "n1", kind, 1)
		n.SuppressStartupConfig = true
		n.License = testFile(l, "lic", "")
		p := planOf(t, l)
		if fileOf(p, path) != nil {
			t.Errorf("%s: %s is there", kind, path)
		}
		for _, m := range p.Containers[0].Mounts {
			if m.Path == path {
				t.Errorf("%s: %s is mounted, which is not there", kind, path)
			}
		}
	}
}

func TestTemplateFuncs(t *testing.T) {
	l := testLab("t")
	n := testNode(l, "n1", "juniper_crpd", 1)
	n.StartupConfig = &lab.Config{Name: "a.cfg", File: *testFile(l, "a.cfg", "{{ add 1 2 }}")}
	p := planOf(t, l, WithTemplateFuncs(template.FuncMap{"add": func(a, b int) int { return a + b }}))
	if f := fileOf(p, "config/juniper.conf"); f == nil || string(f.Content) != "3" {
		t.Errorf("%+v %v", f, p.Diagnostics)
	}
}

func TestExpandEnv(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": ""}
	for in, want := range map[string]string{
		"$A ${A} $B $EMPTY":         "1 1 $B $EMPTY",
		"${B:-d} ${B:=d} ${A:-d}":   "d d 1",
		"$6$salt$hash $1 100$":      "$6$salt$hash $1 100$",
		"a$$b":                      "a$b",
		"${B} ${EMPTY}":             "$B $EMPTY", // without braces, as in containerlab
		"no reference":              "no reference",
		"description \"$(uptime)\"": "description \"$(uptime)\"",
	} {
		if got, err := expandEnv(in, env); err != nil || got != want {
			t.Errorf("%q became %q (%v), want %q", in, got, err, want)
		}
	}
	// Malformed references are errors or stay; none of them panics.
	for _, in := range []string{"${", "${A", "${A:", "${}", "${A b}", "x ${1"} {
		_, _ = expandEnv(in, env)
	}
}
