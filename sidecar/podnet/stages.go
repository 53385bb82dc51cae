package podnet

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// maxResult bounds a result file, which a device may write as it likes: 128
// steps of 4 KiB and their names fit well.
const maxResult = 1 << 20

// readResult reads the progress of a device container's program. The folder's contents come
// from the device, so it follows no links, opens only regular files, and reads at most the
// size of a result.
func readResult(stateDir string, c contract.Container) (contract.Result, error) {
	var r contract.Result
	path := filepath.Join(stateDir, contract.RunDir, c.Name, contract.ResultFile)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return r, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return r, fmt.Errorf("%s is not a plain file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxResult+1))
	if err != nil {
		return r, err
	}
	if len(data) > maxResult {
		return r, fmt.Errorf("%s has more than %d bytes", path, maxResult)
	}
	if r, err = parseResult(data, c.Program.Steps); err != nil {
		return contract.Result{}, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}

// maxText bounds a step's output and error, in bytes; the helper keeps 4 KiB.
const maxText = 4 << 10

// parseResult reads a result as far as it can be one of the program's: its steps, each
// once, with their own names, and stages that the program ends.
func parseResult(data []byte, steps []contract.Step) (contract.Result, error) {
	var r contract.Result
	if err := json.Unmarshal(data, &r); err != nil {
		return contract.Result{}, err
	}
	if r.Version != contract.ResultVersion {
		return contract.Result{}, fmt.Errorf("version %.40q, and this sidecar knows %q", r.Version, contract.ResultVersion)
	}
	seen := map[int]bool{}
	r.Steps = slices.DeleteFunc(r.Steps, func(s contract.StepResult) bool {
		wrong := s.Index < 0 || s.Index >= len(steps) || seen[s.Index]
		seen[s.Index] = true
		return wrong
	})
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Name, s.User = steps[s.Index].Name, steps[s.Index].User
		s.Output, s.Error = end(s.Output), end(s.Error)
	}
	over := map[string]bool{"": true}
	r.Over = slices.DeleteFunc(r.Over, func(name string) bool {
		wrong := over[name] || !slices.ContainsFunc(steps, func(s contract.Step) bool { return s.Over == name })
		over[name] = true
		return wrong
	})
	return r, nil
}

// end is the end of a text that is longer than a result's may be.
func end(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[len(text)-maxText:], "")
	}
	return text
}

// ownStage answers for a node of this Pod: mine is false for any other. A node
// without a program is over with every stage when its sidecar has started.
func (s *sidecar) ownStage(w contract.WaitFor) (over, mine bool) {
	m := s.manifest()
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if n.Name != w.Node {
			continue
		}
		if !s.started() {
			return false, true
		}
		if len(n.Containers) == 0 {
			return true, true
		}
		for _, c := range n.Containers {
			r, err := readResult(s.cfg.StateDir, c)
			if err == nil && slices.Contains(r.Over, w.Stage) {
				return true, true
			}
		}
		return false, true
	}
	return false, w.Pod == m.Pod && m.Pod != ""
}

// programs are the results of all device containers with a program.
func (s *sidecar) programs() []api.Program {
	var all []api.Program
	for _, n := range s.manifest().Nodes {
		for _, c := range n.Containers {
			if len(c.Program.Steps) == 0 {
				continue
			}
			p := api.Program{Node: n.Name, Container: c.Name}
			p.Result, _ = readResult(s.cfg.StateDir, c)
			all = append(all, p)
		}
	}
	return all
}
