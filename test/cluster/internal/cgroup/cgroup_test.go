package cgroup

import "testing"

func TestParseMount(t *testing.T) {
	for line, want := range map[string]Hierarchy{
		"31 28 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct":             {Dir: "/sys/fs/cgroup/cpu,cpuacct", Options: "cpu,cpuacct"},
		"32 28 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/lib/agent,name=systemd": {Dir: "/sys/fs/cgroup/systemd", Options: "xattr,none,name=systemd"},
		"33 28 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw":                                           {},
		"34 28 0:29 / /run/elsewhere/cgroup/memory rw - cgroup cgroup rw,memory":                                {},
		"35 28 254:0 / / rw,relatime - ext4 /dev/vda rw":                                                        {},
	} {
		if got, ok := parseMount(line); got != want || ok != (want.Dir != "") {
			t.Errorf("%s\ngot %+v, %v", line, got, ok)
		}
	}
}
