package compile

import (
	"io/fs"
	"testing"
)

func TestStagedModeIsTheSameForEveryUmask(t *testing.T) {
	for _, tt := range []struct{ disk, want fs.FileMode }{
		{0o644, 0o644},
		{0o664, 0o644}, // umask 002
		{0o600, 0o644}, // umask 077
		{0o640, 0o644}, // umask 027
		{0o755, 0o755},
		{0o700, 0o755},
		{0o775, 0o755},
		{0o400, 0o444},
		{0o666, 0o666},
		{0o777, 0o777},
	} {
		if got := stagedMode(tt.disk); got != uint32(tt.want) {
			t.Errorf("stagedMode(%04o) = %04o, want %04o", tt.disk, got, tt.want)
		}
	}
	if got := stagedMode(0o700 | fs.ModeSetuid | fs.ModeSticky); got != 0o5755 {
		t.Errorf("with setuid and sticky: %04o, want 5755", got)
	}
}
