package c9simage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/internal/licenses"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// module is c9s' own module path.
const module = "github.com/c9s-lab/c9s"

// FindSource returns the root of the c9s checkout that dir is in.
func FindSource(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := abs; ; at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+module+"\n") {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not a checkout of c9s, from which the image is built: run the command in one, or name one with --source", dir)
		}
	}
}

// licensesFile is the licences of what is in the image: c9s' own, and those of what its
// programs link.
const licensesFile = "LICENSES"

// Compile builds the image's programs for a platform into dir, and their licences next to
// them. It needs Go in PATH. Nothing of the machine (paths, dates, the state of Git) gets into them.
func Compile(ctx context.Context, source, version string, platform v1.Platform, dir string) ([]Binary, error) {
	var out []Binary
	for _, p := range Programs {
		b := Binary{Program: p, File: filepath.Join(dir, platform.OS+"-"+platform.Architecture, p.Path)}
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
			"-ldflags", "-s -w -buildid= -X main.Version="+version, "-o", b.File, p.Package)
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOFLAGS=", "GOWORK=off")
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stderr, &stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("building %s for %s: %w\n%s", p.Path, platform, err, stderr.Bytes())
		}
		out = append(out, b)
	}
	texts, err := licensesOf(ctx, source, platform, filepath.Join(dir, platform.OS+"-"+platform.Architecture))
	return append(out, texts), err
}

// licensesOf writes the licences of the image's programs, and returns the file.
func licensesOf(ctx context.Context, source string, platform v1.Platform, dir string) (Binary, error) {
	b := Binary{Program: Program{Path: licensesFile}, File: filepath.Join(dir, licensesFile)}
	packages := make([]string, len(Programs))
	for i, p := range Programs {
		packages[i] = p.Package
	}
	modules, err := licenses.Linked(ctx, source, []licenses.Platform{{OS: platform.OS, Arch: platform.Architecture}}, packages...)
	if err != nil {
		return b, err
	}
	own, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		return b, err
	}
	return b, os.WriteFile(b.File, slices.Concat(own, []byte("\n"), licenses.All(modules)), 0o644)
}
