package controller

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestRollback: versions that grow, stay, cannot be read or cannot be compared mean
// nothing; one that is lower is a restore.
func TestRollback(t *testing.T) {
	for name, c := range map[string]struct {
		versions []string // "" cannot be read
		want     error
	}{
		"restored":              {[]string{"100", "120", "90"}, errRollback},
		"restored while away":   {[]string{"1000", "", "", "999"}, errRollback},
		"grows":                 {[]string{"9", "10", "10", "100"}, nil},
		"cannot be read":        {[]string{"9", "", "10"}, nil},
		"cannot be compared":    {[]string{"b", "a", "9", "x"}, nil},
		"restored at the start": {[]string{"5"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			asked := 0
			got := untilRollback(ctx, time.Millisecond, func(context.Context) (string, error) {
				if asked == len(c.versions) {
					end()
					return "", ctx.Err()
				}
				asked++
				if v := c.versions[asked-1]; v != "" {
					return v, nil
				}
				return "", errors.New("away")
			})
			if got != c.want {
				t.Errorf("after %d versions: %v, want %v", asked, got, c.want)
			}
		})
	}
}
