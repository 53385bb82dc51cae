package render

import (
	"bytes"
	"encoding/json"
	"syscall"
	"testing"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/c9s-lab/c9s/internal/inorder"
	"github.com/c9s-lab/c9s/pkg/manifest"
)

// BenchmarkYAML compares manifest's writer with the libraries, from typed objects to
// YAML, for a lab of 1,000 nodes and 4,000 links on all processors.
func BenchmarkYAML(b *testing.B) {
	objs := mesh(1000, 4000).mustRender(b).Objects
	for _, bench := range []struct {
		name  string
		write func(o manifest.Object) ([]byte, error)
	}{
		{"manifest", func(o manifest.Object) ([]byte, error) {
			fresh := []manifest.Object{{Object: o.Object, Source: o.Source}}
			var w bytes.Buffer
			err := manifest.WriteStream(&w, fresh, manifest.YAML)
			return w.Bytes(), err
		}},
		{"sigs.k8s.io", func(o manifest.Object) ([]byte, error) { return yaml.Marshal(o.Object) }},
		{"sigs.k8s.io/JSONToYAML", func(o manifest.Object) ([]byte, error) {
			data, err := (&manifest.Object{Object: o.Object}).JSON()
			if err != nil {
				return nil, err
			}
			return yaml.JSONToYAML(data)
		}},
		{"yaml.v3", func(o manifest.Object) ([]byte, error) {
			data, err := json.Marshal(o.Object)
			if err != nil {
				return nil, err
			}
			var m map[string]any
			if err := json.Unmarshal(data, &m); err != nil {
				return nil, err
			}
			var w bytes.Buffer
			enc := yamlv3.NewEncoder(&w)
			enc.SetIndent(2)
			enc.CompactSeqIndent()
			err = enc.Encode(m)
			return w.Bytes(), err
		}},
		{"yaml.v3/ordered", func(o manifest.Object) ([]byte, error) {
			data, err := (&manifest.Object{Object: o.Object}).JSON()
			if err != nil {
				return nil, err
			}
			var n yamlv3.Node
			if err := yamlv3.Unmarshal(data, &n); err != nil {
				return nil, err
			}
			unstyle(&n)
			var w bytes.Buffer
			enc := yamlv3.NewEncoder(&w)
			enc.SetIndent(2)
			enc.CompactSeqIndent()
			err = enc.Encode(&n)
			return w.Bytes(), err
		}},
		{"encode/manifest", func(o manifest.Object) ([]byte, error) { return (&manifest.Object{Object: o.Object}).JSON() }},
		{"encode/json", func(o manifest.Object) ([]byte, error) { return json.Marshal(o.Object) }},
		{"encode/json+sort", func(o manifest.Object) ([]byte, error) {
			data, err := json.Marshal(o.Object)
			if err != nil {
				return nil, err
			}
			var m map[string]json.RawMessage
			if err := json.Unmarshal(data, &m); err != nil {
				return nil, err
			}
			var all map[string]any
			if err := json.Unmarshal(data, &all); err != nil {
				return nil, err
			}
			return json.Marshal(all)
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			size, before := 0, cpuTime()
			for b.Loop() {
				size = 0
				err := inorder.Do(len(objs), func(i int) ([]byte, error) { return bench.write(objs[i]) }, func(data []byte) error {
					size += len(data)
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size), "bytes")
			b.ReportMetric(float64((cpuTime()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// cpuTime returns the processor time of this process, which other processes of a busy
// machine do not change as they change the elapsed time.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func unstyle(n *yamlv3.Node) {
	n.Style = 0
	if n.Kind == yamlv3.ScalarNode && n.Tag == "!!str" && bytes.ContainsRune([]byte(n.Value), '\n') {
		n.Style = yamlv3.LiteralStyle
	}
	for _, c := range n.Content {
		unstyle(c)
	}
}
