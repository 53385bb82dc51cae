package save

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// ErrNoRollback is the error of a node that has to restart for its declared configuration.
var ErrNoRollback = errors.New("no rollback")

// Reset brings back the declared configuration of a node by the rule of its kind, without a
// restart. declared is nil if it is not known. The error is ErrNoRollback, possibly wrapped, if
// there is no way to do so; the device is unchanged then.
func Reset(ctx context.Context, kind *kinds.Kind, d Device, declared []byte) error {
	rule := kind.Reset
	switch {
	case rule == nil:
		return fmt.Errorf("%w: kind %s has none", ErrNoRollback, kind.Name)
	case rule.Put != "" && declared == nil:
		return fmt.Errorf("%w: the topology has no configuration of the node", ErrNoRollback)
	}
	if len(rule.Probe) > 0 {
		code, err := d.Exec(ctx, rule.Probe, nil, io.Discard, io.Discard)
		switch {
		case err != nil:
			return err
		case code != 0:
			return fmt.Errorf("%w: its container cannot do it", ErrNoRollback)
		}
	}
	if rule.Put != "" {
		if err := put(ctx, d.Exec, rule.Put, declared); err != nil {
			return fmt.Errorf("writing %s: %w", rule.Put, err)
		}
	}
	out, err := run(ctx, d.Exec, rule.Argv, rule.Input, rule.Strict)
	if err != nil {
		return err
	}
	return complaint(rule.Fails, out)
}

// put writes a file in a node's container. Only its owner can read it.
func put(ctx context.Context, exec Exec, file string, data []byte) error {
	argv := []string{"sh", "-c", `umask 077 && rm -f "$1" && cat >"$1"`, "sh", file}
	errOut := &limited{left: 64 << 10}
	code, err := exec(ctx, argv, bytes.NewReader(data), io.Discard, errOut)
	if err == nil && code != 0 {
		said, _ := errOut.read()
		err = fmt.Errorf("exit code %d%s", code, after(strings.Join(strings.Fields(string(said)), " ")))
	}
	return err
}
