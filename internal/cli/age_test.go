package cli

import (
	"testing"
	"time"
)

// Where the clock of this machine is behind the cluster's, no age is negative.
func TestAge(t *testing.T) {
	for ago, want := range map[time.Duration]string{10 * time.Minute: "10m", -10 * time.Minute: "0s"} {
		if got := age(time.Now().Add(-ago)); got != want {
			t.Errorf("%s ago: %q, want %q", ago, got, want)
		}
	}
	if got := age(time.Time{}); got != "-" {
		t.Errorf("no time: %q", got)
	}
}
