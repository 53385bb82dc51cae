package pipeline

import "crypto/rand"

// NewWireKey returns a new random key with which the Pods of a lab authenticate.
func NewWireKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return key
}
