package plantest

import (
	"strings"
	"testing"
)

// unset is the warning of a variable that the environment of c9s does not set.
func unset(file, name string) string {
	return file + ": warning: startup-config: variable " + name + " is not set, so the configuration keeps its name [startup-config-variable]"
}

// A startup-config sees the environment of c9s, never that of a planner or of the node.
var environmentLabs = []lab{
	{
		name: "variables of a startup-config",
		topo: `name: envs
topology:
  nodes:
    r1: {kind: arista_ceos, image: "ceos:4.33", startup-config: base.cfg, env: {NODE_ID: "7", SITE: node}}
`,
		files: map[string]string{"base.cfg": `hostname r1
username ops secret ${OPS_PW}
site ${SITE} $SITE default ${LAB:=lab1} ${LAB2:-lab2} cost $5 price $$6 id ${NODE_ID} empty [$EMPTY]
secret $6$salt$hash sha512
`},
		env: []string{"SITE=fra", "EMPTY="},
		says: []string{
			unset("base.cfg:2", "OPS_PW"), unset("base.cfg:3", "EMPTY"), unset("base.cfg:3", "NODE_ID"),
		},
		look: func(t *testing.T, r *result) {
			const want = `hostname r1
username ops secret $OPS_PW
site fra fra default lab1 lab2 cost $5 price $6 id $NODE_ID empty [$EMPTY]
secret $6$salt$hash sha512
`
			if got := string(r.file(t, "r1", "flash/startup-config").Content); got != want {
				t.Errorf("the startup-config is\n%s\nwant\n%s", got, want)
			}
		},
	},
	{
		name: "the planner's own variables",
		topo: `name: own
topology:
  defaults: {image: "img:1", startup-config: conf.txt}
  nodes:
    eos: {kind: ceos}
    vmx: {kind: juniper_vmx}
    srl: {kind: nokia_srlinux}
    xrd: {kind: cisco_xrd}
`,
		files: map[string]string{"conf.txt": "! $HOME ${USER} ${TMPDIR} $TZ ${LANG:-none} $CI ${PATH} ${PWD}\n"},
		env:   []string{"HOME=/home/ada", "USER=ada", "PATH=/usr/bin"},
		says: []string{
			unset("conf.txt:1", "CI"), unset("conf.txt:1", "PWD"), unset("conf.txt:1", "TMPDIR"), unset("conf.txt:1", "TZ"),
		},
		look: func(t *testing.T, r *result) {
			const want = "! /home/ada ada $TMPDIR $TZ none $CI /usr/bin $PWD\n"
			for _, node := range []string{"eos", "vmx", "srl", "xrd"} {
				if all := text(r.plan(t, node)); !strings.Contains(all, want) {
					t.Errorf("%s: the plan has no line %q:\n%s", node, want, all)
				}
			}
		},
	},
	{
		name: "IOL's configuration is not expanded",
		topo: `name: iol
topology:
  nodes:
    r1: {kind: cisco_iol, image: "iol:17", startup-config: conf.txt}
`,
		files: map[string]string{"conf.txt": "hostname {{ .Hostname }}\nbanner motd $Welcome$ to ${SITE}\n"},
		env:   []string{"SITE=fra", "Welcome=no"},
		look: func(t *testing.T, r *result) {
			if got := string(r.file(t, "r1", "boot_config.txt").Content); !strings.Contains(got, "hostname r1\nbanner motd $Welcome$ to ${SITE}\n") {
				t.Errorf("the configuration is\n%s", got)
			}
		},
	},
}
