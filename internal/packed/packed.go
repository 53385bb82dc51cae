// Package packed stores text that may be large in a ConfigMap, which holds 1 MiB.
package packed

import (
	"bytes"
	"compress/gzip"
	"fmt"

	"github.com/c9s-lab/c9s/internal/foreign"
)

// Suffix is that of a key whose value is compressed with gzip.
const Suffix = ".gz"

// Pack compresses text with gzip.
func Pack(text []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is one of gzip's
	}
	w.Write(text) // a Buffer does not fail
	w.Close()
	return out.Bytes()
}

// Unpack returns the text that Pack has compressed, or an error if it is longer than limit bytes.
func Unpack(data []byte, limit int64) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return foreign.Read(r, limit)
}

// Text returns the text under a key of a ConfigMap's data, or of its binaryData under the
// key with Suffix. It returns nil if neither is there.
func Text(data map[string]string, binaryData map[string][]byte, key string, limit int64) ([]byte, error) {
	if packed, ok := binaryData[key+Suffix]; ok {
		text, err := Unpack(packed, limit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key+Suffix, err)
		}
		return text, nil
	}
	if text, ok := data[key]; ok {
		return []byte(text), nil
	}
	return nil, nil
}
