// Package save fetches the running configurations of nodes and stores them next to the
// topology, where a later deploy finds them.
package save

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// maxConfig is the maximum size of a configuration in bytes.
var maxConfig = 64 << 20

// Exec runs a command in the container of one node, and returns its exit code. The error
// is for a command that could not run.
type Exec func(ctx context.Context, argv []string, in io.Reader, out, errOut io.Writer) (int, error)

// ErrUnsupported is the error of a node that has no configuration to save.
var ErrUnsupported = errors.New("unsupported")

// Device is a node whose configuration is saved.
type Device struct {
	Exec Exec
	// Dial connects to a port of its management address.
	Dial  func(ctx context.Context, port uint16) (net.Conn, error)
	Login lab.Credentials
}

// Config returns the running configuration of a node, by the rule of its kind. The error
// is ErrUnsupported, possibly wrapped, if the node has none.
func Config(ctx context.Context, kind *kinds.Kind, d Device) ([]byte, error) {
	rule := kind.Save
	if rule == nil {
		return nil, fmt.Errorf("%w: kind %s has no rule for saving", ErrUnsupported, kind.Name)
	}
	if joined, ok := joinProbe(rule); ok {
		d.Exec = joined(d.Exec)
	} else if len(rule.Probe) > 0 {
		code, err := d.Exec(ctx, rule.Probe, nil, io.Discard, io.Discard)
		switch {
		case err != nil:
			return nil, err
		case code != 0:
			return nil, fmt.Errorf("%w: %s", ErrUnsupported, rule.Without)
		}
	}
	out, err := get(ctx, rule, d)
	if errors.Is(err, errProbe) {
		err = fmt.Errorf("%w: %s", ErrUnsupported, rule.Without)
	}
	if err != nil {
		return nil, err
	}
	if rule.Text() {
		if out, err = drop(trimTerminal(out), rule.Drop); err != nil {
			return nil, err
		}
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, errors.New("the configuration is empty")
	}
	return out, nil
}

// errProbe is the error of a command whose probe failed, probeFailed its exit code.
var errProbe = errors.New("the probe failed")

const probeFailed = 213

// joinProbe returns an Exec that runs the probe of a rule and its command as one process in the
// container, since each process there costs time. It needs a probe that is a line for a shell, so
// that there is one.
func joinProbe(rule *kinds.Save) (func(Exec) Exec, bool) {
	if len(rule.Probe) != 3 || rule.Probe[0] != "sh" || rule.Probe[1] != "-c" || len(rule.Argv) == 0 || rule.NETCONF != nil || rule.SSH != nil || rule.Fetch != "" {
		return nil, false
	}
	return func(exec Exec) Exec {
		return func(ctx context.Context, argv []string, in io.Reader, out, errOut io.Writer) (int, error) {
			line := fmt.Sprintf(`sh -c "$0" </dev/null >/dev/null 2>&1 || exit %d; exec "$@"`, probeFailed)
			code, err := exec(ctx, append([]string{"sh", "-c", line, rule.Probe[2]}, argv...), in, out, errOut)
			if err == nil && code == probeFailed {
				err = errProbe
			}
			return code, err
		}
	}, true
}

// get does what a rule says, in its order.
func get(ctx context.Context, rule *kinds.Save, d Device) (out []byte, err error) {
	if rule.NETCONF != nil {
		if out, err = overNETCONF(ctx, rule.NETCONF, d); err != nil {
			return nil, err
		}
	}
	if rule.SSH != nil {
		if out, err = overSSH(ctx, rule.SSH, d); err != nil {
			return nil, err
		}
	}
	if len(rule.Argv) > 0 {
		if out, err = run(ctx, d.Exec, rule.Argv, rule.Input, rule.Strict); err != nil {
			return nil, err
		}
	}
	if rule.Fetch != "" {
		out, err = run(ctx, d.Exec, []string{"cat", rule.Fetch}, "", false)
	}
	return out, err
}

// drop leaves out the lines that match one of the patterns.
func drop(text []byte, patterns []string) ([]byte, error) {
	if len(patterns) == 0 {
		return text, nil
	}
	var compiled []*regexp.Regexp
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, err
		}
		compiled = append(compiled, re)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		bare := bytes.TrimRight(line, "\r\n")
		if !slices.ContainsFunc(compiled, func(re *regexp.Regexp) bool { return re.Match(bare) }) {
			out.Write(line)
		}
	}
	return out.Bytes(), nil
}

// run runs a command and returns its output. With strict, any output on standard error is
// an error.
func run(ctx context.Context, exec Exec, argv []string, input string, strict bool) ([]byte, error) {
	var in io.Reader
	if input != "" {
		in = strings.NewReader(input)
	}
	out, errOut := &limited{left: maxConfig}, &limited{left: 64 << 10}
	code, err := exec(ctx, argv, in, out, errOut)
	if err != nil { // the command may still be writing
		return nil, err
	}
	text, exceeded := out.read()
	complaint, _ := errOut.read()
	said := strings.Join(strings.Fields(string(complaint)), " ")
	switch {
	case exceeded:
		return nil, fmt.Errorf("the configuration has more than %d bytes", maxConfig)
	case code != 0:
		if said == "" {
			said = strings.Join(strings.Fields(lastLines(string(text))), " ")
		}
		return nil, fmt.Errorf("%s failed with exit code %d%s", argv[0], code, after(said))
	case strict && said != "":
		return nil, fmt.Errorf("%s reported an error%s", argv[0], after(said))
	}
	return text, nil
}

func after(said string) string {
	if said == "" {
		return ""
	}
	return ": " + said
}

// lastLines returns the end of a text, for messages.
func lastLines(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[len(text)-most:], "")
}

// trimTerminal removes what a terminal adds to the end of lines.
func trimTerminal(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }

// limited is a buffer that ignores what is written beyond its limit.
type limited struct {
	mu       sync.Mutex
	text     bytes.Buffer
	left     int
	exceeded bool
}

func (b *limited) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keep := min(len(p), b.left)
	b.left -= keep
	b.exceeded = b.exceeded || keep < len(p)
	b.text.Write(p[:keep])
	return len(p), nil
}

// read returns what has been written, and whether there was more.
func (b *limited) read() (text []byte, exceeded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Bytes(), b.exceeded
}

// Store writes a configuration, and reports whether it differs from the saved one. The
// file is replaced in one step and can be read only by its owner: configurations contain
// passwords.
func Store(file string, config []byte) (changed bool, err error) {
	old, err := os.ReadFile(file)
	switch {
	case err == nil && bytes.Equal(old, config):
		return false, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	return true, atomicfile.Write(file, config, 0o600, 0o755)
}
