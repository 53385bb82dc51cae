package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
)

// suite is the Debian release that devices are made of.
const suite = "bookworm"

// layers makes the base system, once for all devices, and what a device adds to it.
func (d device) layers(ctx context.Context, b builder) ([]string, error) {
	if err := host.EnsurePackages(ctx, host.ImageTools, b.tell); err != nil {
		return nil, err
	}
	base, err := ensureBase(ctx, b)
	if err != nil {
		return nil, err
	}
	upper := filepath.Join(b.work, "upper")
	if err := d.install(ctx, b, base, upper); err != nil {
		return nil, err
	}
	layers := []string{filepath.Join(b.work, "base.tar"), filepath.Join(b.work, "device.tar")}
	return layers, errors.Join(writeTree(layers[0], base), writeTree(layers[1], upper))
}

// ensureBase makes a minimal Debian system.
func ensureBase(ctx context.Context, b builder) (string, error) {
	dir := filepath.Join(b.cache.Dir, "debian-"+suite)
	unlock, err := host.Lock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	b.tell("making a minimal Debian system (about 100 s; once for all devices)")
	unfinished := dir + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "nice", "-n", "10", "debootstrap", "--variant=minbase", suite, unfinished, mirror(ctx))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("debootstrap: %w\n%s", err, lastLines(out))
	}
	if err := slim(unfinished); err != nil {
		return "", err
	}
	return dir, os.Rename(unfinished, dir)
}

// mirror is where this machine gets Debian's packages from.
func mirror(ctx context.Context) string {
	const usual = "http://deb.debian.org/debian"
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN)", "Created-By: Packages", "Codename: "+suite).Output()
	if err != nil {
		return usual
	}
	for _, line := range strings.Split(string(out), "\n") {
		if uri, origin, _ := strings.Cut(line, " "); origin == "Debian" {
			return uri
		}
	}
	return usual
}

// install adds a device's packages and files; what changes lands in upper.
func (d device) install(ctx context.Context, b builder, base, upper string) error {
	root, work := filepath.Join(b.work, "root"), filepath.Join(b.work, "overlay")
	for _, dir := range []string{root, work, upper} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// A mount namespace of its own, so that an interrupted build leaves no mount.
	script := fmt.Sprintf(`set -e
mount --make-rprivate /
mount -t overlay overlay -o lowerdir=%[1]s,upperdir=%[2]s,workdir=%[3]s %[4]s
mount -t proc proc %[4]s/proc
mount --rbind /dev %[4]s/dev
for f in resolv.conf hosts; do touch %[4]s/etc/$f; mount --bind /etc/$f %[4]s/etc/$f; done
mkdir -p %[4]s/tmp/apt %[4]s/tmp/debs
apt-config dump --format '%%f "%%v";%%n' Acquire::http Acquire::https > %[4]s/tmp/apt/host.conf
printf '#!/bin/sh\nexit 101\n' > %[4]s/usr/sbin/policy-rc.d
chmod 755 %[4]s/usr/sbin/policy-rc.d
export DEBIAN_FRONTEND=noninteractive LC_ALL=C APT_CONFIG=/tmp/apt/host.conf
chroot %[4]s apt-get update -qq
chroot %[4]s apt-get install -y -qq --no-install-recommends %[5]s
chroot %[4]s sh -e -c "$DEVICE_SCRIPT"
rm -rf %[4]s/usr/sbin/policy-rc.d %[4]s/tmp/apt %[4]s/tmp/debs
`, base, upper, work, root, strings.Join(d.packages, " "))
	cmd := exec.CommandContext(ctx, "nice", "-n", "10", "unshare", "--mount", "sh", "-c", script)
	cmd.Env = append(os.Environ(), "DEVICE_SCRIPT="+d.script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("installing its packages: %w\n%s", err, lastLines(out))
	}
	for _, name := range sortedKeys(d.files) {
		if err := host.WriteFile(filepath.Join(upper, name), d.files[name].text, d.files[name].mode); err != nil {
			return err
		}
	}
	return slim(upper)
}

// slim removes what no device reads. In an overlay's upper folder nothing is
// removed from below.
func slim(root string) error {
	var problems []error
	for _, pattern := range []string{
		"usr/share/doc/*", "usr/share/man/*", "usr/share/locale/*", "usr/share/info/*", "usr/share/lintian/*",
		"var/lib/apt/lists/*", "var/cache/apt/*", "var/cache/debconf/*-old", "var/log/*.log", "var/log/apt/*", "dev/*", "proc/*",
	} {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		problems = append(problems, err)
		for _, match := range matches {
			if !isWhiteout(match) {
				problems = append(problems, os.RemoveAll(match))
			}
		}
	}
	return errors.Join(problems...)
}

func isWhiteout(path string) bool {
	var stat unix.Stat_t
	return unix.Lstat(path, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFCHR && stat.Rdev == 0
}

func sortedKeys(files map[string]file) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func lastLines(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
