package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/planner/internal/sandbox"
)

// TestMain is a program in the sandbox when its first argument says so: "probe" prints
// what it sees there, and "attack" what it can do to the machine. "deny" runs the rest
// of its arguments where no namespaces can be made.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "deny":
			os.Exit(deny(os.Args[2:]))
		case "probe":
			os.Exit(inSandbox(probe))
		case "attack":
			os.Exit(inSandbox(attack))
		}
	}
	os.Exit(m.Run())
}

// inSandbox runs a function in the sandbox and returns the exit code.
func inSandbox(run func() int) int {
	if !sandbox.Inside() {
		code, err := sandbox.Enter()
		if err != nil {
			fmt.Println(err)
			return 1
		}
		return code
	}
	for _, step := range []func() error{sandbox.Prepare, sandbox.DropCapabilities, sandbox.Limit} {
		if err := step(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	return run()
}

// deny is what a machine without user namespaces is to the command that it becomes.
func deny(command []string) int {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0o644); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(syscall.Exec(command[0], command, os.Environ()))
	return 1
}

// attack tries to reach what belongs to the user, and prints the name of each attempt
// that succeeds. Its argument is a JSON target.
func attack() int {
	var to target
	if err := json.Unmarshal([]byte(os.Args[2]), &to); err != nil {
		fmt.Println(err)
		return 1
	}
	for name, try := range to.attempts() {
		if try() == nil {
			fmt.Println("succeeded:", name)
		}
	}
	fmt.Println("done")
	return 3
}

// target is what the attacks are at.
type target struct {
	Folder  string // of the user's, with a file "secret"
	Process int    // of the user's
	Server  string // an address that listens on the loopback interface
	Memory  int    // the key of shared memory (shmget(2)), of the user's
}

func (to target) attempts() map[string]func() error {
	secret := filepath.Join(to.Folder, "secret")
	proc := fmt.Sprintf("/proc/%d/", to.Process)
	read := func(name string) func() error {
		return func() error {
			text, err := os.ReadFile(name)
			if err == nil && !strings.Contains(string(text), "planted") && !strings.Contains(string(text), "root:") {
				return errors.New("some other file")
			}
			return err
		}
	}
	return map[string]func() error{
		"read a file":                 read(secret),
		"read the shadow file":        read("/etc/shadow"),
		"read through the old root":   read("/old" + secret),
		"read a process's variables":  read(proc + "environ"),
		"read through a process":      read(proc + "root" + secret),
		"write a file":                func() error { return os.WriteFile(secret, []byte("changed"), 0o644) },
		"make a file":                 func() error { return os.WriteFile(filepath.Join(to.Folder, "new"), nil, 0o644) },
		"write through a process":     func() error { return os.WriteFile(proc+"cwd/new", nil, 0o644) },
		"truncate a file":             func() error { return os.Truncate(secret, 0) },
		"remove a file":               func() error { return os.Remove(secret) },
		"rename a file":               func() error { return os.Rename(secret, secret+".old") },
		"link to a file":              func() error { return os.Link(secret, "link") },
		"change the program's mode":   func() error { return chmodProgram() },
		"read shared memory":          func() error { _, err := unix.SysvShmGet(to.Memory, 8, 0); return err },
		"list a folder":               func() error { _, err := os.ReadDir(to.Folder); return err },
		"end a process":               func() error { return syscall.Kill(to.Process, syscall.SIGKILL) },
		"trace a process":             func() error { return syscall.PtraceAttach(to.Process) },
		"connect to a server":         func() error { return connect(to.Server, false) },
		"connect by multipath TCP":    func() error { return connect(to.Server, true) },
		"listen":                      func() error { return listen(false) },
		"listen by multipath TCP":     func() error { return listen(true) },
		"become another user":         func() error { return syscall.Setresuid(65534, 65534, 65534) },
		"give a file to another user": func() error { return chownNew(65534) },
	}
}

func connect(address string, multipath bool) error {
	var d net.Dialer
	d.SetMultipathTCP(multipath)
	c, err := d.Dial("tcp", address)
	if err == nil {
		c.Close()
	}
	return err
}

// listen returns an error unless others than this process could connect to it.
func listen(multipath bool) error {
	var config net.ListenConfig
	config.SetMultipathTCP(multipath)
	l, err := config.Listen(context.Background(), "tcp", "0.0.0.0:0")
	if err != nil {
		return err
	}
	defer l.Close()
	if sandbox.Contained() {
		return errors.New("in a network of its own")
	}
	return nil
}

func chmodProgram() error {
	program, err := sandbox.Program()
	if err != nil {
		return err
	}
	return os.Chmod(program, 0o755)
}

func chownNew(uid int) error {
	if err := os.WriteFile("mine", nil, 0o644); err != nil {
		return err
	}
	return os.Chown("mine", uid, -1)
}

func probe() int {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") {
			fmt.Println(strings.Join(strings.Fields(line), " "))
		}
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, i := range interfaces {
		fmt.Println("interface", i.Name)
	}
	if _, err := net.Dial("udp", "192.0.2.1:53"); err != nil {
		fmt.Println("no route")
	}
	if err := os.WriteFile("/proc/sys/kernel/hostname", []byte("changed"), 0o644); err == nil {
		fmt.Println("renamed its own host")
	}
	return 3
}

// TestSandbox: the program sees a loopback and the pair that hooks look for, and
// reaches nothing; its exit code comes through.
func TestSandbox(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "probe")
	cmd.Env, cmd.Dir = []string{}, t.TempDir()
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, want := range []string{"interface lo", "interface eth0", "interface mp0", "no route",
		// chown, fowner, fsetid and, in its own namespaces, sys_admin and net_admin are left, and nothing gives more
		"CapPrm: 0000000000201019", "CapEff: 0000000000201019", "CapBnd: 0000000000201019", "CapInh: 0000000000000000", "NoNewPrivs: 1"} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %q:\n%s", want, out)
		}
	}
	if n := strings.Count(string(out), "interface "); n != 3 {
		t.Errorf("%d interfaces:\n%s", n, out)
	}
	if after, err := os.Hostname(); err != nil || after != before {
		t.Errorf("the host is called %q now: %v", after, err)
	}
}

// TestAttacks: nothing that a hook tries reaches the user's files, processes or network,
// in namespaces and, where the kernel gives none, under Landlock's rules. Those do not
// cover multipath TCP, the modes of files, and System V's shared memory.
func TestAttacks(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		command  []string
		attr     *syscall.SysProcAttr
		says     string
		mayReach []string
	}{
		{name: "namespaces", command: []string{self, "attack"}},
		{name: "landlock", command: []string{self, "deny", self, "attack"}, says: "running without namespaces of its own",
			mayReach: []string{"connect by multipath TCP", "listen by multipath TCP", "change the program's mode", "read shared memory"}, attr: &syscall.SysProcAttr{
				Cloneflags:                 syscall.CLONE_NEWUSER,
				UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
				GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
				GidMappingsEnableSetgroups: false,
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := target{Folder: t.TempDir()}
			secret := filepath.Join(to.Folder, "secret")
			if err := os.WriteFile(secret, []byte("planted"), 0o600); err != nil {
				t.Fatal(err)
			}
			victim := exec.Command("sleep", "600")
			victim.Dir, victim.Env = to.Folder, append(os.Environ(), "TOKEN=planted")
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- victim.Wait() }()
			to.Process = victim.Process.Pid
			server, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			to.Server = server.Addr().String()
			to.Memory = os.Getpid()<<8 | 0xc9
			memory, err := unix.SysvShmGet(to.Memory, 8, unix.IPC_CREAT|unix.IPC_EXCL|0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.SysvShmCtl(memory, unix.IPC_RMID, nil)

			// Without the sandbox most of it works, so that a denial means something.
			text, err := json.Marshal(to)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"read a file", "read a process's variables", "read through a process", "list a folder", "connect to a server", "listen", "change the program's mode", "read shared memory"} {
				if err := to.attempts()[name](); err != nil {
					t.Errorf("outside, %s: %v", name, err)
				}
			}

			cmd := exec.Command(c.command[0], append(c.command[1:], string(text))...)
			cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{}, t.TempDir(), c.attr
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
				t.Errorf("%v\n%s%s", err, out, stderr.String())
			}
			for line := range strings.Lines(string(out)) {
				name := strings.TrimPrefix(strings.TrimSpace(line), "succeeded: ")
				if name != "done" && !slices.Contains(c.mayReach, name) {
					t.Error(line)
				}
			}
			if !strings.HasSuffix(string(out), "done\n") {
				t.Errorf("it ended early:\n%s", out)
			}
			if !strings.Contains(stderr.String(), c.says) || strings.Contains(stderr.String(), "without limits") {
				t.Errorf("it says %q", stderr.String())
			}
			select {
			case err := <-ended:
				t.Errorf("the user's process ended: %v", err)
			default:
				victim.Process.Kill()
				<-ended
			}
			if text, err := os.ReadFile(secret); err != nil || string(text) != "planted" {
				t.Errorf("the file has %q: %v", text, err)
			}
			if files, err := os.ReadDir(to.Folder); err != nil || len(files) != 1 {
				t.Errorf("the folder has %v: %v", files, err)
			}
		})
	}
}
