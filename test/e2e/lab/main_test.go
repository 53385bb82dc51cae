// Package lab deploys labs to a real cluster with c9s itself, breaks them, edits
// them and takes them away.
package lab

import (
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
	program  string
	layout   string
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
	for _, step := range [][]string{
		{"go", "build", "-o", program, "./cmd/c9s"},
		{program, "image", "build", c9sImage, "--platform", "linux/amd64", "-o", layout},
	} {
		cmd := exec.Command(step[0], step[1:]...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %v\n%s", step, err, out)
			return 1
		}
	}
	return testcluster.Run(m, testcluster.Options{IPv6: true, Images: []string{"linux", "frr", layout + "=" + c9sImage}})
}
