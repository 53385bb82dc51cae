// Package bugreport collects what a bug report about a lab needs, without secrets.
package bugreport

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// File is a file of the archive.
type File struct {
	Name string
	Data []byte
}

// Write writes files as a compressed tar archive with one folder.
func Write(w io.Writer, folder string, files []File, now time.Time) error {
	zip := gzip.NewWriter(w)
	out := tar.NewWriter(zip)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(folder, f.Name), Mode: 0o644, Size: int64(len(f.Data)), ModTime: now}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(f.Data); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return zip.Close()
}

// Collector reads a lab's objects.
type Collector struct {
	Client    kubernetes.Interface
	Namespace string
	// Lab is the value of the label.
	Lab string
	// Lines is how many lines of each log are read.
	Lines int64
	// Devices reports whether the logs of the devices are read too.
	Devices bool

	scrub Scrubber
	files []File
}

// Collect returns the files. What cannot be read is named in errors.txt; it keeps nothing else
// from being read. Secrets are not read at all. Nothing in the files has a value that a Secret,
// an environment variable, an argument or a file of a device has.
func (c *Collector) Collect(ctx context.Context) []File {
	var failed []string
	try := func(what string, read func() error) {
		if err := read(); err != nil {
			failed = append(failed, what+": "+err.Error())
		}
	}
	selector := metav1.ListOptions{LabelSelector: contract.LabelLab + "=" + c.Lab}
	var pods []corev1.Pod
	try("pods", func() error {
		list, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, selector)
		if err == nil {
			pods = list.Items
			for i := range pods {
				c.object("pods", pods[i].Name, c.pod(pods[i]))
			}
		}
		return err
	})
	try("deployments", func() error {
		list, err := c.Client.AppsV1().Deployments(c.Namespace).List(ctx, selector)
		if err == nil {
			for _, d := range list.Items {
				c.object("deployments", d.Name, c.deployment(d))
			}
		}
		return err
	})
	try("services", func() error {
		list, err := c.Client.CoreV1().Services(c.Namespace).List(ctx, selector)
		if err == nil {
			for _, s := range list.Items {
				meta(&s.ObjectMeta)
				c.object("services", s.Name, s)
			}
		}
		return err
	})
	try("configmaps", func() error {
		list, err := c.Client.CoreV1().ConfigMaps(c.Namespace).List(ctx, selector)
		if err == nil {
			for _, m := range list.Items {
				c.object("configmaps", m.Name, configMap(m))
			}
		}
		return err
	})
	try("events", func() error {
		list, err := c.Client.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			c.add("events.txt", events(list.Items))
		}
		return err
	})
	for i := range pods {
		c.logs(ctx, &pods[i], try)
	}
	if len(failed) > 0 {
		c.add("errors.txt", []byte(strings.Join(failed, "\n")+"\n"))
	}
	for i := range c.files { // by now all values are known
		c.files[i].Data = c.scrub.Clean(c.files[i].Data)
	}
	return c.files
}

// Clean removes secrets from another file of the archive. Collect must have returned.
func (c *Collector) Clean(data []byte) []byte { return c.scrub.Clean(data) }

func (c *Collector) add(name string, data []byte) { c.files = append(c.files, File{name, data}) }

func (c *Collector) object(kind, name string, o any) {
	data, err := yaml.Marshal(o)
	if err != nil {
		data = []byte(err.Error())
	}
	c.add("objects/"+kind+"/"+name+".yaml", data)
}

// annotations are those that are kept: none of them has a text of the topology's author.
var annotations = []string{
	contract.AnnotationSource, contract.AnnotationPlanner, contract.AnnotationVersion, contract.AnnotationLabName, contract.AnnotationNodeName,
	contract.AnnotationContainers, contract.AnnotationLinkApply, "deployment.kubernetes.io/revision",
}

func meta(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	for name := range m.Annotations {
		if !slices.Contains(annotations, name) {
			m.Annotations[name] = Removed
		}
	}
}

func (c *Collector) pod(p corev1.Pod) corev1.Pod {
	meta(&p.ObjectMeta)
	c.spec(&p.Spec)
	return p
}

func (c *Collector) deployment(d appsv1.Deployment) appsv1.Deployment {
	meta(&d.ObjectMeta)
	meta(&d.Spec.Template.ObjectMeta)
	c.spec(&d.Spec.Template.Spec)
	return d
}

// spec removes the values of environment variables, and the arguments of devices.
func (c *Collector) spec(s *corev1.PodSpec) {
	s.EphemeralContainers = nil // somebody's own, for debugging
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			k := &list[i]
			own := k.Name == contract.WireContainer || k.Name == contract.ControllerName
			for j := range k.Env {
				if v := k.Env[j].Value; v != "" && !own {
					c.scrub.Note(k.Env[j].Name, v)
					k.Env[j].Value = Removed
				}
			}
			if own {
				continue
			}
			for _, words := range []*[]string{&k.Command, &k.Args} {
				for j, word := range *words {
					name := ""
					if j > 0 {
						name = (*words)[j-1]
					}
					c.scrub.Note(name, word)
				}
				if len(*words) > 0 {
					*words = []string{fmt.Sprintf("[%d words removed]", len(*words))}
				}
			}
			k.LivenessProbe, k.ReadinessProbe, k.StartupProbe, k.Lifecycle = nil, nil, nil, nil
		}
	}
}

// configMap keeps what c9s itself wrote, and only the names and sizes of others' files.
func configMap(m corev1.ConfigMap) corev1.ConfigMap {
	meta(&m.ObjectMeta)
	for key, text := range m.Data {
		if key == contract.LinksFile || key == contract.TopologyFile || strings.HasPrefix(m.Name, "c9s-directory") || m.Name == contract.AddressesConfigMap {
			continue
		}
		m.Data[key] = fmt.Sprintf("[%d bytes removed]", len(text))
	}
	for key, data := range m.BinaryData {
		m.BinaryData[key] = fmt.Appendf(nil, "[%d bytes removed]", len(data))
	}
	return m
}

func events(list []corev1.Event) []byte {
	when := func(e corev1.Event) time.Time {
		if !e.LastTimestamp.IsZero() {
			return e.LastTimestamp.Time
		}
		return e.EventTime.Time
	}
	slices.SortFunc(list, func(a, b corev1.Event) int { return when(a).Compare(when(b)) })
	var b bytes.Buffer
	for _, e := range list {
		fmt.Fprintf(&b, "%s %s %s/%s %s: %s\n", when(e).UTC().Format(time.RFC3339), e.Type, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return b.Bytes()
}

// logs reads the logs of c9s' own containers, those of the devices where they are wanted, and of
// each the one before its last restart.
func (c *Collector) logs(ctx context.Context, p *corev1.Pod, try func(string, func() error)) {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		own := s.Name == contract.WireContainer || s.Name == contract.ControllerName
		if !own && !c.Devices || s.State.Waiting != nil && s.RestartCount == 0 {
			continue
		}
		for _, previous := range []bool{false, true} {
			if previous && s.RestartCount == 0 {
				continue
			}
			name := p.Name + "-" + s.Name
			if previous {
				name += "-previous"
			}
			try("log of "+name, func() error {
				data, err := c.Client.CoreV1().Pods(c.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Container: s.Name, TailLines: &c.Lines, Previous: previous, Timestamps: true}).DoRaw(ctx)
				if err == nil {
					c.add("logs/"+name+".log", data)
				}
				return err
			})
		}
	}
}

// JSON returns a value as a file.
func JSON(name string, v any) File {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		data = []byte(err.Error())
	}
	return File{name, append(data, '\n')}
}
