package control

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/c9s-lab/c9s/test/cluster/internal/binaries"
	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// FakeAnnotation marks the workers that kwok simulates.
const FakeAnnotation = "kwok.x-k8s.io/node"

// stageFiles tell kwok what becomes of a node and of a Pod; it has none of its
// own outside kwokctl.
var stageFiles = []string{
	"node/fast/node-initialize.yaml",
	"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/fast/pod-ready.yaml",
	"pod/fast/pod-complete.yaml",
	"pod/fast/pod-delete.yaml",
}

func stagesPath(cache string) string { return filepath.Join(cache, "kwok-stages.yaml") }

// EnsureStages collects kwok's stages from its module.
func EnsureStages(ctx context.Context, cache binaries.Cache) error {
	if _, err := os.Stat(stagesPath(cache.Dir)); err == nil {
		return nil
	}
	dir, err := cache.ModuleDir(ctx, "kwok", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	var stages []string
	for _, name := range stageFiles {
		text, err := os.ReadFile(filepath.Join(dir, "kustomize/stage", name))
		if err != nil {
			return fmt.Errorf("reading a stage of kwok: %w", err)
		}
		stages = append(stages, string(text))
	}
	return host.WriteFile(stagesPath(cache.Dir), []byte(strings.Join(stages, "\n---\n")), 0o644)
}

func kwok(c site.Cluster) []string {
	return []string{
		"kwok",
		"--kubeconfig=" + c.Kubeconfig(),
		"--config=" + stagesPath(c.Cache),
		"--manage-nodes-with-annotation-selector=" + FakeAnnotation + "=fake",
		"--node-lease-duration-seconds=40", // renewed every 10 s
	}
}
