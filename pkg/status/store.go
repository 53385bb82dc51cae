package status

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/internal/foreign"
	"github.com/c9s-lab/c9s/internal/packed"
)

// Keys of the ConfigMap c9s-status: a Lab in JSON, or the same compressed with gzip if it
// is large.
const (
	Key       = "status.json"
	PackedKey = Key + packed.Suffix
)

// plainSize is the maximum size of uncompressed JSON in bytes. A ConfigMap holds 1 MiB,
// which the status of 1,000 nodes and 4,000 links exceeds.
const plainSize = 512 << 10

// Patch returns a merge patch that stores the status in the ConfigMap, shortened as by
// Short and without what was measured: it is written when a state changes, and figures of
// that moment say nothing about the lab at rest.
func (l Lab) Patch() ([]byte, error) {
	short := l.Short()
	short.Links = slices.Clone(l.Links)
	for i := range short.Links {
		short.Links[i].RTT, short.Links[i].Loss = 0, 0
	}
	text, err := json.Marshal(short)
	if err != nil {
		return nil, err
	}
	if len(text) <= plainSize {
		return storing(string(text), nil)
	}
	return storing(nil, packed.Pack(text))
}

// storing sets one of the keys and removes the other, which is nil.
func storing(plain, compressed any) ([]byte, error) {
	return json.Marshal(map[string]any{"data": map[string]any{Key: plain}, "binaryData": map[string]any{PackedKey: compressed}})
}

// Stored reads a status from the ConfigMap, which the controller is not the only one to
// write.
func Stored(cm *corev1.ConfigMap) (l Lab, err error) {
	text, err := packed.Text(cm.Data, cm.BinaryData, Key, foreign.MaxLab)
	if err != nil {
		return l, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
	}
	if l, err = Parse(text); err != nil {
		return l, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
	}
	return l, nil
}

// Parse reads a status from JSON that somebody else wrote.
func Parse(text []byte) (l Lab, err error) {
	if err := foreign.JSON(text, foreign.MaxLabElements, &l); err != nil {
		return Lab{}, err
	}
	return l, nil
}
