package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEnabled(t *testing.T) {
	text := "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t5\t12\t1\nmemory\t0\t88\t0\npids\t0\t88\t1\n"
	if got := strings.Join(enabled(text), " "); got != "cpuset pids" {
		t.Errorf("enabled: %s, want cpuset pids", got)
	}
}

func TestCheckUnified(t *testing.T) {
	const all = "cpuset cpu io memory hugetlb pids rdma misc\n"
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string // of the error; none when empty
	}{
		{"the kernel's root", map[string]string{"cgroup.controllers": all, "cgroup.procs": "1\n2\n"}, ""},
		{"no memory", map[string]string{"cgroup.controllers": "cpuset cpu pids\n", "cgroup.procs": "1\n"}, "controllers memory are missing"},
		{"a container's, with room", map[string]string{"cgroup.controllers": all, "cgroup.type": "domain\n", "cgroup.procs": ""}, ""},
		{"a container's, occupied", map[string]string{"cgroup.controllers": all, "cgroup.type": "domain\n", "cgroup.procs": "1\n"}, "/init/cgroup.procs"},
		{"a container's, with few", map[string]string{"cgroup.controllers": "memory pids\n", "cgroup.type": "domain\n", "cgroup.procs": "1\n"}, "controllers cpu, cpuset are missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range test.files {
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := checkUnified(root)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
