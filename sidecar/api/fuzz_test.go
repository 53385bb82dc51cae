package api

import (
	"bytes"
	"testing"
)

// FuzzStatus: whatever a Pod answers is a status with a tag, or an error.
func FuzzStatus(f *testing.F) {
	f.Add([]byte(`{"version":"c9s.dev/status/v1","pod":"r1","interfaces":[{"node":"R1","wire":7}],"fabric":{"wires":[{"id":7,"drops":{"queue":1}}]}}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s *Status
		if read(bytes.NewReader(data), &s) != nil || s == nil {
			return
		}
		if s.Tag() == "" || s.Tag() != s.Still().Tag() {
			t.Errorf("%+v has the tag %q", s, s.Tag())
		}
	})
}
