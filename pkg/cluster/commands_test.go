package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWithoutCommands: a Pod is left alone only if its manifest is known to have no command.
func TestWithoutCommands(t *testing.T) {
	l := &Lab{}
	add := func(kind string, data map[string]any) {
		l.objects = append(l.objects, &unstructured.Unstructured{Object: map[string]any{"kind": kind, "data": data}})
	}
	manifest := func(pod, program string) map[string]any {
		return map[string]any{"manifest.json": `{"version":"c9s.dev/manifest/v1","lab":"x","pod":"` + pod + `","nodes":[{"name":"` + pod + `","id":"` + pod + `","kind":"linux","containers":[{"name":"` +
			pod + `","program":{"version":"c9s.dev/steps/v1","node":"` + pod + `","hold":true` + program + `}}]}]}`}
	}
	add("ConfigMap", manifest("idle", ""))
	add("ConfigMap", manifest("busy", `,"steps":[{"name":"true","user":true,"run":{"argv":["true"]}}]`))
	add("ConfigMap", map[string]any{"manifest.json": "{"})
	add("ConfigMap", map[string]any{"links.json": "{}"})
	add("Secret", manifest("secret", ""))
	if got := strings.Join(slices.Sorted(maps.Keys(l.withoutCommands())), " "); got != "idle" {
		t.Errorf("without commands: %q", got)
	}
}
