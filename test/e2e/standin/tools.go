package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// tools are programs of the devices' images that are run while they start.
var tools = map[string]func(args []string) error{
	"sudo":        sudo,
	"su":          su,
	"sr_cli":      srCLI,
	"Cli":         ceosCLI,
	"supervisord": supervisord,
	"supervisorctl": func(args []string) error {
		return os.WriteFile("/tmp/supervisorctl", []byte(strings.Join(args, " ")), 0o644)
	},
}

// sudo runs its arguments, with or without the environment.
func sudo(args []string) error {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("no command")
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return syscall.Exec(program, args, os.Environ())
}

// su runs the command after -c.
func su(args []string) error {
	for i, a := range args {
		if a == "-c" && i+1 < len(args) {
			return syscall.Exec("/bin/bash", []string{"bash", "-c", args[i+1]}, os.Environ())
		}
	}
	return errors.New("no command")
}

// srCLI answers what is asked while SR Linux starts, and keeps what is configured.
func srCLI(args []string) error {
	command := strings.Join(args, " ")
	switch {
	case strings.Contains(command, "mgmt_server state"):
		fmt.Println("state running")
	case strings.Contains(command, "system information version"):
		fmt.Println("v25.3.1-149-g47cca4a34d")
	case args[0] == "-ed" && len(args) == 1:
		in, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		f, err := os.OpenFile("/tmp/configured", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Write(in)
		return err
	case strings.HasSuffix(command, "commit save"):
		text, err := os.ReadFile("/tmp/configured")
		if err != nil {
			return err
		}
		return os.WriteFile("/etc/opt/srlinux/config.json", text, 0o644)
	}
	return nil
}

// ceosCLI is a session in which lines are typed.
func ceosCLI([]string) error {
	f, err := os.OpenFile("/mnt/flash/typed", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Print("ceos>")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Fprintln(f, lines.Text())
		fmt.Print("ceos#")
	}
	return lines.Err()
}

// supervisord is the switch itself: its image starts nothing before.
func supervisord([]string) error {
	for _, c := range devices["sonic-vs"] {
		if err := c.holds(); err != nil {
			_ = os.WriteFile("/tmp/supervisord", fmt.Appendf(nil, "%s: %v\n", c.what, err), 0o644)
			return fmt.Errorf("%s: %w", c.what, err)
		}
	}
	if err := os.WriteFile("/tmp/supervisord", []byte("all needs are met\n"), 0o644); err != nil {
		return err
	}
	wait()
	return nil
}
