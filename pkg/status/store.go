package status

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/internal/foreign"
)

// Keys of the ConfigMap c9s-status: a Lab in JSON, or the same compressed with gzip if it
// is large.
const (
	Key       = "status.json"
	PackedKey = "status.json.gz"
)

// plainSize is the maximum size of uncompressed JSON in bytes. A ConfigMap holds 1 MiB,
// which the status of 1,000 nodes and 4,000 links exceeds.
const plainSize = 512 << 10

// Patch returns a merge patch that stores the status in the ConfigMap, shortened as by
// Short.
func (l Lab) Patch() ([]byte, error) {
	text, err := json.Marshal(l.Short())
	if err != nil {
		return nil, err
	}
	if len(text) <= plainSize {
		return storing(string(text), nil)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return storing(nil, packed.Bytes())
}

// storing sets one of the keys and removes the other, which is nil.
func storing(plain, packed any) ([]byte, error) {
	return json.Marshal(map[string]any{"data": map[string]any{Key: plain}, "binaryData": map[string]any{PackedKey: packed}})
}

// Stored reads a status from the ConfigMap, which the controller is not the only one to
// write.
func Stored(cm *corev1.ConfigMap) (l Lab, err error) {
	text := []byte(cm.Data[Key])
	if packed := cm.BinaryData[PackedKey]; len(packed) > 0 {
		if text, err = unpack(packed); err != nil {
			return l, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
		}
	}
	if l, err = Parse(text); err != nil {
		return l, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
	}
	return l, nil
}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return foreign.Read(r, foreign.MaxLab)
}

// Parse reads a status from JSON that somebody else wrote.
func Parse(text []byte) (l Lab, err error) {
	if err := foreign.JSON(text, foreign.MaxLabElements, &l); err != nil {
		return Lab{}, err
	}
	return l, nil
}
