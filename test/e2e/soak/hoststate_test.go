package soak

import (
	"bufio"
	"errors"
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
// be compared. What other programs change is omitted where it can be told.
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
		"route":   routes,
		"mount":   mounts,
		"cgroup":  cgroups,
		"sysctl":  sysctls,
		"nft":     func() ([]string, error) { return output("nft", "list", "tables") },
		"folder":  folders,
	} {
		lines, err := read()
		if err != nil {
			t.Fatalf("reading the host's %s: %v", kind, err)
		}
		for _, line := range lines {
			if !ofOtherCluster(line) {
				state[kind+" "+line] = true
			}
		}
	}
	return state
}

var clusterMark = regexp.MustCompile(`c9s(?:-cluster/|[-/])([a-z0-9-]+)`)

// ofOtherCluster reports whether a line names a cluster that is not the test's.
func ofOtherCluster(line string) bool {
	for _, m := range clusterMark.FindAllStringSubmatch(line, -1) {
		if name := m[1]; name != "cluster" && name != cluster && !strings.HasPrefix(name, cluster+"-") {
			return true
		}
	}
	return false
}

// differences are what is new (+) and what no longer exists (-).
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

// settle is how long checkHost looks.
const settle = time.Minute

// checkHost fails when something stays different. Other programs of the machine
// come and go; what they do does not exist any more, or not yet, at another look.
func checkHost(t *testing.T, before hostState) {
	t.Helper()
	var lines []string
	for began, looked := time.Now(), 0; looked < 5 || time.Since(began) < settle; looked++ {
		if lines = before.differences(readHostState(t)); len(lines) == 0 {
			return
		}
		time.Sleep(2 * time.Second)
	}
	t.Errorf("the host is not as it was, after %s:\n%s", settle, strings.Join(lines, "\n"))
}

// clusterProcesses are all that carry the mark of the cluster: its cgroup, or a
// program's name in namespaces that are not the host's and in no cgroup of others.
func clusterProcesses() ([]string, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	var found []string
	for _, dir := range all {
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		name := strings.TrimSpace(string(comm))
		of := string(groups)
		if strings.Contains(of, "/c9s/"+cluster+"/") || clusterProgram.MatchString(name) && !onHost(dir) && !otherGroup.MatchString(of) {
			found = append(found, filepath.Base(dir)+" "+name)
		}
	}
	return found, err
}

// otherGroup are cgroups of what runs programs of those names too.
var otherGroup = regexp.MustCompile(`/c9s/|kubepods|docker|libpod|lxc`)

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

// clusterFile are names of a cluster's in the folders that every program uses.
var clusterFile = regexp.MustCompile(`c9s|kube|containerd|runc|cni|netns|etcd|pods|containers|kwok|xtables`)

func folders() ([]string, error) {
	all, err := names("/var/lib/*", "/etc/cni*", "/opt/*", "/etc/kubernetes*", "/etc/containerd*")
	busy, err2 := names("/run/*", "/var/log/*")
	for _, name := range busy {
		if clusterFile.MatchString(filepath.Base(name)) {
			all = append(all, name)
		}
	}
	return all, errors.Join(err, err2)
}

// expires counts down.
var expires = regexp.MustCompile(` expires -?\d+sec`)

func routes() ([]string, error) {
	lines, err := output("ip", "route", "show", "table", "all")
	for i := range lines {
		lines[i] = expires.ReplaceAllString(lines[i], "")
	}
	return lines, err
}

// otherMount are mounts of other programs.
var otherMount = regexp.MustCompile(` (/run/(user|credentials|docker|snapd|containers)/|/var/lib/(docker|containers)/|/snap/)`)

func mounts() ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []string
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		if line := strings.Join(strings.Fields(scan.Text())[2:5], " "); !otherMount.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines, scan.Err()
}

// cgroups are those of clusters, which have them all below one.
func cgroups() ([]string, error) {
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.Contains(path+"/", "/c9s/") {
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// restless sysctls change by themselves.
var restless = regexp.MustCompile(`fs/(dentry-state|inode-nr|inode-state|file-nr|aio-nr|quota)|kernel/(random|ns_last_pid|pty/nr|tainted|perf_event_max_sample_rate|hung_task_detect_count)|nf_conntrack_count|nr_dying|binfmt_misc|/conf/|/neigh/[^d]`)

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
