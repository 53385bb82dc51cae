// Package inside is what the helper does in a device's container for c9s exec and c9s cp: it
// runs commands as another user, and packs and unpacks files. So it needs no program of the
// image.
package inside

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrUsage is returned for arguments that are wrong.
var ErrUsage = errors.New("usage")

// ExitError ends the helper with an exit code, as shells have them.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

// Exit codes of shells (POSIX, 2.8.2).
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// asOptions say how a command is run.
type asOptions struct {
	user, dir string
	env       []string
	detach    bool
	argv      []string
}

func parseAs(args []string) (asOptions, error) {
	var o asOptions
	flags := flag.NewFlagSet("as", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.user, "user", "", "")
	flags.StringVar(&o.dir, "dir", "", "")
	flags.BoolVar(&o.detach, "detach", false, "")
	flags.Func("env", "", func(text string) error {
		o.env = append(o.env, text)
		return nil
	})
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		return o, ErrUsage
	}
	o.argv = flags.Args()
	return o, nil
}

// As runs a command as another user, in another folder or with more variables. It returns only
// if that fails, or if the command is detached.
func As(args []string) error {
	o, err := parseAs(args)
	if err != nil {
		return err
	}
	id, err := identify(o.user)
	if err != nil {
		return &ExitError{codeNotExecutable, err}
	}
	if err := environment(o.env, id.home); err != nil {
		return err
	}
	if o.dir != "" {
		if err := os.Chdir(o.dir); err != nil {
			return &ExitError{codeNotFound, fmt.Errorf("working directory: %w", err)}
		}
	}
	program, err := find(o.argv[0])
	if err != nil {
		return err
	}
	if o.detach {
		return detach(program, o.argv, id)
	}
	if err := id.become(); err != nil {
		return &ExitError{codeNotExecutable, err}
	}
	return &ExitError{codeNotExecutable, fmt.Errorf("%s: %w", o.argv[0], syscall.Exec(program, o.argv, os.Environ()))}
}

// environment adds variables: NAME=VALUE. A new user has a home of its own.
func environment(list []string, home string) error {
	if home != "" {
		list = append([]string{"HOME=" + home}, list...)
	}
	for _, text := range list {
		name, value, found := strings.Cut(text, "=")
		if !found {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// find looks for a program in PATH.
func find(name string) (string, error) {
	program, err := exec.LookPath(name)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		return filepath.Abs(program)
	case errors.Is(err, fs.ErrPermission):
		return "", &ExitError{codeNotExecutable, fmt.Errorf("%q is not an executable program", name)}
	}
	return "", &ExitError{codeNotFound, fmt.Errorf("there is no program %q", name)}
}

// identity is a user with groups. nil groups leave those of the process.
type identity struct {
	uid, gid int
	groups   []int
	home     string
	set      bool
}

// identify reads USER or USER:GROUP, names or numbers, by the container's /etc/passwd and
// /etc/group.
func identify(text string) (identity, error) {
	if text == "" {
		return identity{}, nil
	}
	name, group, hasGroup := strings.Cut(text, ":")
	id := identity{set: true}
	account, err := user.Lookup(name)
	if err != nil {
		if account, err = user.LookupId(name); err != nil {
			account = nil
		}
	}
	if account != nil {
		id.home = account.HomeDir
		id.uid, _ = strconv.Atoi(account.Uid)
		id.gid, _ = strconv.Atoi(account.Gid)
		if list, err := account.GroupIds(); err == nil && !hasGroup {
			for _, g := range list {
				if n, err := strconv.Atoi(g); err == nil {
					id.groups = append(id.groups, n)
				}
			}
		}
	} else if id.uid, err = strconv.Atoi(name); err != nil {
		return id, fmt.Errorf("unable to find user %s: no matching entries in passwd file", name)
	}
	if !hasGroup {
		return id, nil
	}
	if found, err := user.LookupGroup(group); err == nil {
		group = found.Gid
	}
	if id.gid, err = strconv.Atoi(group); err != nil {
		return id, fmt.Errorf("unable to find group %s: no matching entries in group file", group)
	}
	return id, nil
}

// become makes the process that user's.
func (id identity) become() error {
	if !id.set {
		return nil
	}
	if err := syscall.Setgroups(id.groups); err != nil {
		return fmt.Errorf("set the groups: %w", err)
	}
	if err := syscall.Setgid(id.gid); err != nil {
		return fmt.Errorf("set the group: %w", err)
	}
	if err := syscall.Setuid(id.uid); err != nil {
		return fmt.Errorf("set the user: %w", err)
	}
	return nil
}

// detach starts a command in a session of its own, without input and output.
func detach(program string, argv []string, id identity) error {
	cmd := &exec.Cmd{Path: program, Args: argv, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if id.set {
		credential := &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid)}
		for _, g := range id.groups {
			credential.Groups = append(credential.Groups, uint32(g))
		}
		cmd.SysProcAttr.Credential = credential
	}
	if err := cmd.Start(); err != nil {
		return &ExitError{codeNotExecutable, err}
	}
	return cmd.Process.Release()
}
