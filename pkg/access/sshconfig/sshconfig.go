// Package sshconfig writes entries for ssh's configuration that lead to the nodes of a lab.
package sshconfig

import (
	"fmt"
	"runtime"
	"strings"
)

// Option is a line of ssh_config(5).
type Option struct{ Key, Value string }

// Options are those of every node: its host key changes with each new Pod.
var Options = []Option{
	{"StrictHostKeyChecking", "no"},
	{"UserKnownHostsFile", nullFile()},
	{"GlobalKnownHostsFile", nullFile()},
	{"LogLevel", "ERROR"},
}

func nullFile() string {
	if runtime.GOOS == "windows" {
		return "NUL"
	}
	return "/dev/null"
}

// Command quotes words for ProxyCommand: ssh replaces what begins with "%", and a shell reads
// the rest.
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strings.ReplaceAll(Quote(w), "%", "%%")
	}
	return strings.Join(quoted, " ")
}

// Quote returns a word as a shell reads it. Plain words stay as they are.
func Quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@=,+%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	if runtime.GOOS == "windows" {
		return `"` + word + `"`
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Host is an entry.
type Host struct {
	// Names are the patterns that it matches.
	Names []string
	// User is empty for the user's own.
	User  string
	Proxy string
}

// Text returns the entries as a file.
func Text(header string, hosts []Host) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", header)
	for _, h := range hosts {
		fmt.Fprintf(&b, "\nHost %s\n", strings.Join(h.Names, " "))
		if h.User != "" {
			fmt.Fprintf(&b, "    User %s\n", h.User)
		}
		fmt.Fprintf(&b, "    ProxyCommand %s\n", h.Proxy)
		for _, o := range Options {
			fmt.Fprintf(&b, "    %s %s\n", o.Key, o.Value)
		}
	}
	return b.String()
}
