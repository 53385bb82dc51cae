package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/internal/foreign"
)

// Usage is what a container uses.
type Usage struct {
	// CPU is in thousandths of a processor, Memory in bytes (the working set).
	CPU    float64
	Memory uint64
}

// ContainerKey names a container of a Pod.
type ContainerKey struct{ Pod, Container string }

// ErrNoUsage reports that nothing tells what containers use.
var ErrNoUsage = errors.New("CPU and memory are unknown: the cluster has no metrics-server, and you may not ask the kubelets (get nodes/proxy)")

// Usage returns what the containers of a lab use: from the metrics API (metrics-server), or else
// from the kubelets of its workers.
func (c *Client) Usage(ctx context.Context, l Found, workers []string) (map[ContainerKey]Usage, error) {
	if out, err := c.metricsUsage(ctx, l.Namespace); err == nil && len(out) > 0 {
		return out, nil
	}
	out := map[ContainerKey]Usage{}
	var failed error
	for _, worker := range workers {
		data, err := c.Typed.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + worker + "/proxy/stats/summary").DoRaw(ctx)
		if err == nil {
			err = summaryUsage(data, l.Namespace, out)
		}
		if err != nil {
			failed = err
		}
	}
	if len(out) == 0 && failed != nil {
		return nil, ErrNoUsage
	}
	return out, nil
}

// metricsUsage asks the metrics API (metrics.k8s.io/v1beta1).
func (c *Client) metricsUsage(ctx context.Context, namespace string) (map[ContainerKey]Usage, error) {
	data, err := c.Typed.CoreV1().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces/" + namespace + "/pods").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			metav1.ObjectMeta `json:"metadata"`
			Containers        []struct {
				Name  string
				Usage map[string]resource.Quantity
			}
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("reading the metrics of namespace %s: %w", namespace, err)
	}
	out := map[ContainerKey]Usage{}
	for _, pod := range list.Items {
		for _, k := range pod.Containers {
			cpu, memory := k.Usage["cpu"], k.Usage["memory"]
			out[ContainerKey{pod.Name, k.Name}] = Usage{CPU: cpu.AsApproximateFloat64() * 1000, Memory: uint64(max(0, memory.Value()))}
		}
	}
	return out, nil
}

// summaryUsage reads a kubelet's summary (k8s.io/kubelet/pkg/apis/stats/v1alpha1).
func summaryUsage(data []byte, namespace string, out map[ContainerKey]Usage) error {
	var summary struct {
		Pods []struct {
			PodRef     struct{ Name, Namespace string }
			Containers []struct {
				Name string
				CPU  struct {
					UsageNanoCores float64
				}
				Memory struct {
					WorkingSetBytes uint64
				}
			}
		}
	}
	if err := foreign.JSON(data, foreign.MaxElements*8, &summary); err != nil {
		return fmt.Errorf("reading a kubelet's summary: %w", err)
	}
	for _, pod := range summary.Pods {
		if pod.PodRef.Namespace != namespace {
			continue
		}
		for _, k := range pod.Containers {
			out[ContainerKey{pod.PodRef.Name, k.Name}] = Usage{CPU: k.CPU.UsageNanoCores / 1e6, Memory: k.Memory.WorkingSetBytes}
		}
	}
	return nil
}

// Workers returns the workers that a lab's nodes are on.
func Workers(names []string) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(n string) bool { return n == "" })
}
