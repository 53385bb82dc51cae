package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"github.com/c9s-lab/c9s/internal/foreign"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/manifest"
)

// Links returns the connectivity of a Pod as the cluster has it.
func (c *Client) Links(ctx context.Context, lab Found, pod string) (*contract.Links, error) {
	_, links, err := c.readLinks(ctx, lab, pod)
	return links, err
}

func (c *Client) readLinks(ctx context.Context, lab Found, pod string) (*corev1.ConfigMap, *contract.Links, error) {
	cm, err := c.Typed.CoreV1().ConfigMaps(lab.Namespace).Get(ctx, contract.LinksConfigMap(pod), metav1.GetOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the links of %s: %w", pod, err)
	}
	links := &contract.Links{}
	if err := foreign.JSON([]byte(cm.Data[contract.LinksFile]), foreign.MaxElements, links); err != nil {
		return nil, nil, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
	}
	return cm, links, nil
}

// Impair changes what an interface of a node does to the frames that it sends, and returns the
// interface with the change. The next deploy restores the impairment of the policy. The digest
// of the Pod's links in the topology changes with them: a Pod with another one counts as late.
func (c *Client) Impair(ctx context.Context, lab Found, n Node, name string, change func(contract.Interface, contract.Quality) contract.Quality) (in contract.Interface, err error) {
	var before, after string
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		cm, links, err := c.readLinks(ctx, lab, n.Deployment)
		if err != nil {
			return err
		}
		i, err := FindInterface(links, n.Name, name)
		if err != nil {
			return err
		}
		now, ok := links.Interfaces[i].Quality()
		if !ok {
			return fmt.Errorf("%s:%s does not lead to a node of the lab: only such links can be impaired", n.Name, name)
		}
		links.Interfaces[i].SetQuality(change(links.Interfaces[i], now))
		in = links.Interfaces[i]
		if before, after = cm.Data[contract.LinksFile], manifest.PrettyJSON(links, 2); before == after {
			return nil
		}
		cm.Data[contract.LinksFile] = after
		_, err = c.Typed.CoreV1().ConfigMaps(lab.Namespace).Update(ctx, cm, metav1.UpdateOptions{FieldManager: FieldManager + "-link"})
		return err
	})
	if err != nil || before == after {
		return in, err
	}
	if err := c.renewDigest(ctx, lab, n.Deployment, before, after); err != nil {
		return in, err
	}
	return in, c.touch(ctx, lab.Namespace, n.Deployment)
}

// renewDigest replaces the digest of a Pod's links in the topology.
func (c *Client) renewDigest(ctx context.Context, lab Found, pod, before, after string) error {
	configMaps := c.Typed.CoreV1().ConfigMaps(lab.Namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		cm, err := configMaps.Get(ctx, contract.TopologyName(0), metav1.GetOptions{})
		if apierrors.IsNotFound(err) { // of an older c9s
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the list of links: %w", err)
		}
		text := contract.RenewLinksDigest(cm.Data[contract.TopologyFile], pod, before, after)
		if text == cm.Data[contract.TopologyFile] {
			return nil
		}
		cm.Data[contract.TopologyFile] = text
		_, err = configMaps.Update(ctx, cm, metav1.UpdateOptions{FieldManager: FieldManager + "-link"})
		return err
	})
}

// dropFaults removes the faults that are over from live objects: a Pod's links, and the digest
// of the links in the list of all of them. Nothing else ends a fault there.
func dropFaults(live map[string]*unstructured.Unstructured, now time.Time) {
	for _, u := range live {
		pod := u.GetLabels()[contract.LabelPod]
		before, _, _ := unstructured.NestedString(u.Object, "data", contract.LinksFile)
		if u.GetKind() != "ConfigMap" || u.GetName() != contract.LinksConfigMap(pod) || !strings.Contains(before, `"fault"`) {
			continue
		}
		links := &contract.Links{}
		if err := foreign.JSON([]byte(before), foreign.MaxElements, links); err != nil {
			continue // it is shown as it is
		}
		for i := range links.Interfaces {
			if q, _ := links.Interfaces[i].Quality(); q.Fault.Over(now) {
				links.Interfaces[i].SetQuality(contract.Quality{Impairment: q.Impairment})
			}
		}
		after := manifest.PrettyJSON(links, 2)
		setData(u, contract.LinksFile, after)
		if topology := live["ConfigMap/"+contract.TopologyName(0)]; topology != nil {
			text, _, _ := unstructured.NestedString(topology.Object, "data", contract.TopologyFile)
			setData(topology, contract.TopologyFile, contract.RenewLinksDigest(text, pod, before, after))
		}
	}
}

// setData sets a key of a ConfigMap that has data.
func setData(u *unstructured.Unstructured, key, value string) {
	if data, ok := u.Object["data"].(map[string]any); ok {
		data[key] = value
	}
}

// FindInterface returns the index of an interface of a node, by its name in Linux or in the
// kind's spelling.
func FindInterface(links *contract.Links, node, name string) (int, error) {
	var names []string
	for i, in := range links.Interfaces {
		if in.Node != node {
			continue
		}
		if in.Name == name || in.Alias == name && name != "" {
			return i, nil
		}
		names = append(names, in.Name)
	}
	if len(names) == 0 {
		return 0, fmt.Errorf("node %s has no links", node)
	}
	slices.Sort(names)
	return 0, fmt.Errorf("node %s has no interface %s; it has %s", node, name, strings.Join(names, ", "))
}
