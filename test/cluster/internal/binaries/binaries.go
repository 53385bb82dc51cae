// Package binaries builds the programs of a cluster from their Go modules, once,
// into a cache folder named by their versions.
package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/modules"
)

// A Cache is the folder of one set of versions.
type Cache struct {
	Dir     string
	clocked bool // its programs have a clock that can be off
}

// Open returns the cache of the versions in modules/, under
// $XDG_CACHE_HOME/c9s-cluster or ~/.cache/c9s-cluster.
func Open() (Cache, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return Cache{}, fmt.Errorf("finding the cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	return Cache{Dir: filepath.Join(base, "c9s-cluster", modules.Key())}, nil
}

// Bin is the folder of the programs.
func (c Cache) Bin() string {
	if c.clocked {
		return filepath.Join(c.Dir, ClockedBin)
	}
	return filepath.Join(c.Dir, "bin")
}

// ClockedBin is the folder of WithClock in a cache.
const ClockedBin = "bin-clock"

// Path is where a program is, once built.
func (c Cache) Path(name string) string { return filepath.Join(c.Bin(), name) }

// Ensure builds those programs of the list that are missing. An interrupted
// build continues with the next missing program. tell is given one line per
// program before and after its build.
func (c Cache) Ensure(ctx context.Context, list []Binary, tell func(string)) error {
	if len(c.missing(list)) == 0 {
		return nil
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("building the cluster's programs needs Go: install it from https://go.dev/dl")
	}
	unlock, err := host.Lock(ctx, filepath.Join(c.Dir, "build.lock"))
	if err != nil {
		return err
	}
	defer unlock()

	missing := c.missing(list)
	left := 0
	for _, b := range missing {
		left += b.Seconds
	}
	if len(missing) > 0 {
		tell(fmt.Sprintf("building %d programs into %s, about %s on two idle cores; once for these versions", len(missing), c.Bin(), minutes(left)))
	}
	for i, b := range missing {
		tell(fmt.Sprintf("  [%d/%d] %s (about %s)", i+1, len(missing), b.Name, minutes(b.Seconds)))
		start := time.Now()
		if err := c.build(ctx, b); err != nil {
			return err
		}
		tell(fmt.Sprintf("  [%d/%d] %s built in %s", i+1, len(missing), b.Name, time.Since(start).Round(time.Second)))
	}
	if len(missing) > 0 {
		tell(c.disk(ctx))
	}
	return nil
}

func (c Cache) missing(list []Binary) []Binary {
	var out []Binary
	for _, b := range list {
		if _, err := os.Stat(c.Path(b.Name)); errors.Is(err, fs.ErrNotExist) {
			out = append(out, b)
		}
	}
	return out
}

func (c Cache) build(ctx context.Context, b Binary) error {
	src := filepath.Join(c.Dir, "src", b.Module)
	if err := modules.Write(b.Module, src); err != nil {
		return fmt.Errorf("writing the module of %s: %w", b.Name, err)
	}
	if err := os.MkdirAll(c.Bin(), 0o755); err != nil {
		return err
	}
	flags, err := linkerFlags(b)
	if err != nil {
		return err
	}
	unfinished := filepath.Join(c.Bin(), "."+b.Name)
	args := []string{"build", "-mod=readonly", "-trimpath", "-ldflags", flags, "-o", unfinished}
	if c.clocked {
		overlay, err := c.Overlay(ctx, src)
		if err != nil {
			return err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := goCommand(ctx, src, append(args, b.Package)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s (%s): %w\n%s", b.Name, b.Package, err, tail(output.String(), 20))
	}
	return os.Rename(unfinished, c.Path(b.Name))
}

// ModuleDir is the folder of a module's source in the module cache, downloaded
// when it does not exist.
func (c Cache) ModuleDir(ctx context.Context, module, path string) (string, error) {
	src := filepath.Join(c.Dir, "src", module)
	if err := modules.Write(module, src); err != nil {
		return "", err
	}
	if out, err := goCommand(ctx, src, "mod", "download", path).CombinedOutput(); err != nil {
		return "", fmt.Errorf("downloading %s: %w\n%s", path, err, out)
	}
	out, err := goCommand(ctx, src, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		return "", fmt.Errorf("finding %s in the module cache: %w", path, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// goCommand runs go politely: a build of minutes must not starve what else the
// machine does.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", niceness(), "go"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	return cmd
}

func niceness() string {
	if n := os.Getenv("C9S_CLUSTER_NICE"); n != "" {
		return n
	}
	return "10"
}

// linkerFlags stamps Kubernetes programs with their version, which they compare
// with each other's.
func linkerFlags(b Binary) (string, error) {
	const strip = "-s -w"
	if !strings.HasPrefix(b.Package, "k8s.io/kubernetes/") {
		return strip, nil
	}
	v, err := modules.Version("programs", "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(v), "v"), ".")
	flags := []string{strip}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			fmt.Sprintf("-X %s.gitVersion=%s", pkg, v),
			fmt.Sprintf("-X %s.gitMajor=%s", pkg, major),
			fmt.Sprintf("-X %s.gitMinor=%s", pkg, minor))
	}
	return strings.Join(flags, " "), nil
}

func minutes(seconds int) string {
	if seconds < 90 {
		return fmt.Sprintf("%d s", seconds)
	}
	return fmt.Sprintf("%d min", (seconds+30)/60)
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
