package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/modules"
)

// pauseRecipe compiles Kubernetes' own pause: 0.1 MB of memory in every Pod.
var pauseRecipe = recipe{
	references: []string{"registry.k8s.io/pause:3.10"},
	version:    "3.10",
	config:     v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"},
	layers: func(ctx context.Context, b builder) ([]string, error) {
		if err := host.EnsurePackages(ctx, host.Compiler, b.tell); err != nil {
			return nil, err
		}
		source, err := b.cache.ModuleDir(ctx, "programs", "k8s.io/kubernetes")
		if err != nil {
			return nil, err
		}
		program := filepath.Join(b.work, "pause")
		cmd := exec.CommandContext(ctx, "gcc", "-Os", "-static", "-DVERSION=3.10", "-o", program, filepath.Join(source, "build/pause/linux/pause.c"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compiling pause.c (Debian: apt-get install gcc libc6-dev): %w\n%s", err, out)
		}
		return programLayer(b, program)
	},
}

// CoreDNSReference is the image that the DNS Deployment asks for.
var CoreDNSReference = "registry.k8s.io/coredns/coredns:" + corednsVersion()

var corednsRecipe = recipe{
	references: []string{CoreDNSReference},
	version:    corednsVersion(),
	config:     v1.Config{Entrypoint: []string{"/coredns"}, User: "0:0"},
	layers: func(_ context.Context, b builder) ([]string, error) {
		return programLayer(b, b.cache.Path("coredns"))
	},
}

func corednsVersion() string {
	v, err := modules.Version("programs", "github.com/coredns/coredns")
	if err != nil {
		panic(err) // the module text is part of this program
	}
	return v
}

func programLayer(b builder, program string) ([]string, error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	layer := filepath.Join(b.work, "layer.tar")
	return []string{layer}, writeFiles(layer, map[string]file{filepath.Base(program): {mode: 0o755, text: text}})
}
