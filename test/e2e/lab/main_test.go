// Package lab deploys labs to a real cluster with c9s itself, breaks them, edits
// them and takes them away.
package lab

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

const repo = "../../.."

// What the tests share: the program, and the image that its Pods use, with the
// folder that it is loaded from. The tag is new each time, since workers keep
// images by name.
var (
	program string
	layout  string
	// planner plans the nodes: the hooks where they can be built here, unless
	// C9S_E2E_PLANNER names another.
	planner  = os.Getenv("C9S_E2E_PLANNER")
	c9sImage = fmt.Sprintf("ghcr.io/c9s-lab/c9s:e2e-%d", time.Now().Unix())
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "c9s-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "c9s")
	layout = filepath.Join(dir, "image")
	if err := choosePlanner(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, step := range [][]string{
		// With a version: two builds without one never count as the same.
		{"go", "build", "-ldflags", "-X github.com/c9s-lab/c9s/internal/cli.Version=e2e", "-o", program, "./cmd/c9s"},
		{program, "image", "build", c9sImage, "--platform", "linux/amd64", "-o", layout},
	} {
		cmd := exec.Command(step[0], step[1:]...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %v\n%s", step, err, out)
			return 1
		}
	}
	return testcluster.Run(m, testcluster.Options{IPv6: true, Images: []string{"linux", "frr", "vm", layout + "=" + c9sImage}})
}

// choosePlanner builds the hook planner's program beside c9s, unless the tests are to
// run with the catalogue or containerlab's module does not resolve here.
func choosePlanner(dir string) error {
	if planner == "builtin" {
		return nil
	}
	module := func(args ...string) ([]byte, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir = filepath.Join(repo, "planner")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // to drop capabilities
		return cmd.CombinedOutput()
	}
	if out, err := module("list", "-mod=mod", "-deps", "./..."); err != nil {
		if planner != "" {
			return fmt.Errorf("planner %s: %w\n%s", planner, err, out)
		}
		planner = "builtin"
		fmt.Fprintln(os.Stderr, "planning with the catalogue: containerlab's module does not resolve here")
		return nil
	}
	planner = cmp.Or(planner, "hooks")
	if out, err := module("build", "-mod=mod", "-o", dir, "./cmd/c9s-planner"); err != nil {
		return fmt.Errorf("building c9s-planner: %w\n%s", err, out)
	}
	return nil
}
