// Package fakecli stands in for a device's command line: it prints the prompts
// that containerlab's drivers wait for, and writes down what is typed.
package fakecli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// Run plays the program argv (Cli, cli, sr_cli, su) on in and out until the input
// ends or the session is left, and appends each line typed before that to the file
// record.
func Run(in io.Reader, out io.Writer, record string, argv []string) error {
	file, err := os.OpenFile(record, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, "\x00%s\n", strings.Join(argv, " ")); err != nil {
		return err
	}
	s := newSession(argv)
	fmt.Fprint(out, s.prompt())
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		// What leaves the session is no part of it: a driver closes the connection
		// right after, so that the line may come or not.
		if s.enter(line) {
			return nil
		}
		if line != "" {
			if _, err := fmt.Fprintln(file, line); err != nil {
				return err
			}
		}
		fmt.Fprint(out, "\r\n"+s.prompt())
	}
	return lines.Err()
}

// session follows the modes of a command line.
type session struct {
	style      string
	privileged bool
	configure  bool
}

func newSession(argv []string) *session {
	s := &session{style: "eos"}
	if len(argv) > 0 {
		switch argv[0] {
		case "cli":
			s.style = "junos"
		case "sr_cli":
			s.style = "srl"
		case "su":
			s.style = "vyos"
		}
	}
	return s
}

func (s *session) prompt() string {
	switch s.style {
	case "junos":
		if s.configure {
			return "\r\n[edit]\r\nroot@device# "
		}
		return "root@device> "
	case "srl":
		return "--{ running }--[  ]--\r\nA:device# "
	case "vyos":
		if s.configure {
			return "[edit]\r\nadmin@device# "
		}
		return "admin@device:~$ "
	}
	switch {
	case s.configure:
		return "device(config)#"
	case s.privileged:
		return "device#"
	}
	return "device>"
}

// enter takes one line and tells whether it ends the session.
func (s *session) enter(line string) (left bool) {
	switch {
	case line == "enable":
		s.privileged = true
	case strings.HasPrefix(line, "configure"):
		s.configure = true
	case line == "end", line == "abort":
		s.configure = false
	case line == "exit", line == "exit configuration-mode", line == "exit discard":
		if !s.configure {
			return true
		}
		s.configure = false
	}
	return false
}
