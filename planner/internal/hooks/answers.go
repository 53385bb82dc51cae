package hooks

import (
	"regexp"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// canned is what a command in a container is assumed to answer. A command with a
// Gate is asked again and again until its output holds that; a Question only
// decides what the hook does next, and is no step of the plan.
type canned struct {
	command  string // a part of the command line
	answer   string
	gate     string
	question bool
}

// cannedAnswers are the conversations that hooks have with a device. They follow
// from what hooks look for in the output, not from a device. What a hook makes of the
// answer to a question is in no plan: the catalogue decides the steps of such kinds.
var cannedAnswers = map[string][]canned{
	"nokia_srlinux": {
		{command: "mgmt_server state | grep running", answer: "state running", gate: "running"},
		{command: "mgmt_server.ready_for_config", answer: "loaded initial configuration", gate: "loaded initial configuration"},
		{command: "information version | grep version", answer: "version v25.7.1-187-g0000000000", question: true},
		{command: "system features | grep openconfig", question: true},
		{command: "environment show | grep -A 2 prompt", answer: `value = "--{ running }--[  ]--"`, question: true},
	},
	"keysight_ixia-c-one": {
		{command: "/home/keysight/ixia-c-one/init-done"},
	},
	"nokia_srsim": {
		{command: "/usr/bin/pgrep", gate: ""},
		{command: "/etc/sros-version", answer: "v25.7.R1", question: true},
	},
}

// answers are the canned outputs for a node's kind; any other command answers
// nothing, successfully.
func answers(n *lab.Node) func([]string) string {
	return func(argv []string) string {
		if c := find(n, argv); c != nil {
			return c.answer
		}
		return ""
	}
}

func find(n *lab.Node, argv []string) *canned {
	line := strings.Join(argv, " ")
	for i, c := range cannedAnswers[n.Kind] {
		if strings.Contains(line, c.command) {
			return &cannedAnswers[n.Kind][i]
		}
	}
	return nil
}

var release = regexp.MustCompile(`\d+\.\d+\.[A-Za-z0-9]+`)

// newest stands for a release that the tag of an image does not tell: what hooks leave
// out for the newest release, a device may not know.
const newest = "99.0.R1"

// imageLabels are the labels of an image, as far as SR-SIM's hooks tell its images and
// their release by them. The release is that of the tag.
func imageLabels(n *lab.Node) map[string]string {
	if n.Kind != "nokia_srsim" {
		return map[string]string{}
	}
	version := newest
	if _, tag, ok := strings.Cut(n.Image[strings.LastIndex(n.Image, "/")+1:], ":"); ok && release.MatchString(tag) {
		version = release.FindString(tag)
	}
	return map[string]string{
		"org.opencontainers.image.title": "srsim", "org.opencontainers.image.vendor": "Nokia", "org.opencontainers.image.version": version,
	}
}

// overNetwork reports whether PostDeploy opens a network connection to the device,
// which nothing answers here.
func overNetwork(kind string) bool { return kind == "nokia_srsim" || kind == "nokia_sros" }
