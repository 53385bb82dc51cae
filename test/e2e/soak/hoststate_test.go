package soak

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"
)

// A hostState is everything of the host that a cluster touches, as lines that can
// be compared.
type hostState map[string]bool

// readHostState looks at processes of clusters, network namespaces, interfaces,
// routes, mounts, cgroups, sysctls, packet filters and folders.
func readHostState(t *testing.T) hostState {
	t.Helper()
	state := hostState{}
	for kind, read := range map[string]func() ([]string, error){
		"process": clusterProcesses,
		"netns":   func() ([]string, error) { return names("/run/netns/*") },
		"link":    func() ([]string, error) { return names("/sys/class/net/*") },
		"route":   func() ([]string, error) { return output("ip", "route", "show", "table", "all") },
		"mount":   mounts,
		"cgroup":  cgroups,
		"sysctl":  sysctls,
		"nft":     func() ([]string, error) { return output("nft", "list", "tables") },
		"folder": func() ([]string, error) {
			return names("/var/lib/*", "/etc/cni*", "/opt/*", "/run/*", "/var/log/*", "/etc/kubernetes*", "/etc/containerd*")
		},
	} {
		lines, err := read()
		if err != nil {
			t.Fatalf("reading the host's %s: %v", kind, err)
		}
		for _, line := range lines {
			state[kind+" "+line] = true
		}
	}
	return state
}

// differences are what is new (+) and what is gone (-).
func (before hostState) differences(after hostState) []string {
	var lines []string
	for line := range after {
		if !before[line] {
			lines = append(lines, "+ "+line)
		}
	}
	for line := range before {
		if !after[line] {
			lines = append(lines, "- "+line)
		}
	}
	sort.Strings(lines)
	return lines
}

// checkHost fails when something stays different. Other programs of the machine
// come and go; what they do is not there any more, or not yet, at another look.
func checkHost(t *testing.T, before hostState) {
	t.Helper()
	var lines []string
	for range 5 {
		if lines = before.differences(readHostState(t)); len(lines) == 0 {
			return
		}
		time.Sleep(2 * time.Second)
	}
	t.Errorf("the host is not as it was:\n%s", strings.Join(lines, "\n"))
}

// clusterProcesses are all that carry the mark of a cluster: its cgroup, or a
// program's name in namespaces that are not the host's.
func clusterProcesses() ([]string, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	var found []string
	for _, dir := range all {
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		name := strings.TrimSpace(string(comm))
		if strings.Contains(string(groups), "/c9s/") || clusterProgram.MatchString(name) && !onHost(dir) {
			found = append(found, filepath.Base(dir)+" "+name)
		}
	}
	return found, err
}

func onHost(process string) bool {
	own, _ := os.Readlink("/proc/self/ns/pid")
	its, _ := os.Readlink(filepath.Join(process, "ns/pid"))
	return its == "" || its == own
}

var clusterProgram = regexp.MustCompile(`^(etcd|kube-apiserver|kube-controller|kube-scheduler|kubelet|kube-proxy|containerd.*|coredns|pause|kwok|c9s-cluster)$`)

func names(patterns ...string) ([]string, error) {
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func output(name string, args ...string) ([]string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

func mounts() ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []string
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		lines = append(lines, strings.Join(strings.Fields(scan.Text())[2:5], " "))
	}
	return lines, scan.Err()
}

func cgroups() ([]string, error) {
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// restless sysctls change by themselves.
var restless = regexp.MustCompile(`fs/(dentry-state|inode-nr|inode-state|file-nr|aio-nr|quota)|kernel/(random|ns_last_pid|pty/nr|tainted)|nf_conntrack_count|nr_dying|binfmt_misc|/conf/|/neigh/[^d]`)

func sysctls() ([]string, error) {
	var found []string
	err := filepath.WalkDir("/proc/sys", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || restless.MatchString(path) {
			return nil
		}
		if value, err := os.ReadFile(path); err == nil {
			found = append(found, path+" = "+strings.TrimSpace(string(value)))
		}
		return nil
	})
	return found, err
}
