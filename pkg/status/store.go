package status

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the ConfigMap c9s-status: a Lab in JSON, or the same compressed by gzip,
// where it is large.
const (
	Key       = "status.json"
	PackedKey = "status.json.gz"
)

// plainSize is how large plain JSON may be, bytes. A ConfigMap takes 1 MiB, which
// the status of 1,000 nodes and 4,000 links exceeds.
const plainSize = 512 << 10

// Patch is a merge patch of the ConfigMap that stores a status there, without what
// is too much for it.
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

// Stored reads a status from the ConfigMap.
func Stored(cm *corev1.ConfigMap) (l Lab, err error) {
	var text io.Reader = strings.NewReader(cm.Data[Key])
	if packed := cm.BinaryData[PackedKey]; len(packed) > 0 {
		if text, err = gzip.NewReader(bytes.NewReader(packed)); err != nil {
			return l, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
		}
	}
	if err := json.NewDecoder(text).Decode(&l); err != nil {
		return l, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
	}
	return l, nil
}
