package sshconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What is installed is what ssh itself reads, and removing it leaves the user's file as it was.
func TestInstall(t *testing.T) {
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("needs ssh, to read the configuration")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	const own = "Host other\n    User me\n\nHost *\n    User nobody\n    ServerAliveInterval 7"
	if err := os.WriteFile(config, []byte(own), 0o640); err != nil {
		t.Fatal(err)
	}
	one := Text("lab one", []Host{
		{Names: []string{"R1", "r1.one"}, User: "admin", Proxy: Command("/usr/bin/c9s", "dial", "r1:22", "--context", "a b")},
		{Names: []string{"R2"}, Proxy: "c9s dial r2:22"},
	})
	for name, text := range map[string]string{"one.conf": one, "two.conf": Text("lab two", []Host{{Names: []string{"S1"}, Proxy: "c9s dial s1:22"}})} {
		if _, err := Install(dir, name, text); err != nil {
			t.Fatal(err)
		}
	}
	show := func(host string) string {
		t.Helper()
		data, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		// ssh takes a relative Include for one of ~/.ssh.
		file := filepath.Join(t.TempDir(), "config")
		text := strings.Replace(string(data), "Include c9s/", "Include "+dir+"/c9s/", 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(ssh, "-G", "-F", file, host).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	for host, want := range map[string][]string{
		"R1":     {"user admin", "proxycommand /usr/bin/c9s dial r1:22 --context 'a b'", "stricthostkeychecking false", "userknownhostsfile /dev/null", "loglevel ERROR", "serveraliveinterval 7"},
		"r1.one": {"user admin"},
		"R2":     {"user nobody", "proxycommand c9s dial r2:22"},
		"S1":     {"proxycommand c9s dial s1:22"},
		"other":  {"user me", "stricthostkeychecking ask"},
	} {
		got := show(host)
		for _, line := range want {
			if !strings.Contains(got, line+"\n") {
				t.Errorf("%s: no %q in\n%s", host, line, got)
			}
		}
	}
	for _, name := range []string{"one.conf", "two.conf"} {
		if was, err := Remove(dir, name); !was || err != nil {
			t.Errorf("%s: %v, %v", name, was, err)
		}
	}
	if was, err := Remove(dir, "one.conf"); was || err != nil {
		t.Errorf("again: %v, %v", was, err)
	}
	data, err := os.ReadFile(config)
	info, statErr := os.Stat(config)
	if string(data) != own || err != nil || statErr != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the user's file is %q (%v), %v %v", data, info.Mode(), err, statErr)
	}
	if _, err := os.Stat(filepath.Join(dir, folder)); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

// A configuration that is a link stays one, and one that is missing is made.
func TestInstallLinked(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(t.TempDir(), "dotfile")
	if err := os.WriteFile(target, []byte("Host a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, "config")); err != nil {
		t.Fatal(err)
	}
	for _, ssh := range []string{dir, filepath.Join(t.TempDir(), "missing", ".ssh")} {
		if _, err := Install(ssh, "one.conf", Text("lab", nil)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(ssh, "config"))
		if err != nil || !strings.HasPrefix(string(data), "# BEGIN c9s") {
			t.Errorf("%s: %q, %v", ssh, data, err)
		}
	}
	if info, err := os.Lstat(filepath.Join(dir, "config")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is a file now: %v, %v", info, err)
	}
}
