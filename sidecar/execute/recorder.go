package execute

import (
	"encoding/json"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// keepOutput is how much of a command's output is kept, in bytes: its end.
const keepOutput = 4 << 10

// recorder keeps result.json up to date. It is safe for use by several goroutines:
// a command that was left to itself reports whenever it ends.
type recorder struct {
	file string
	// steps are the program's, whose names the results carry.
	steps []contract.Step
	mu    sync.Mutex
	r     contract.Result
	// closed is set when no more results will follow.
	closed bool
}

func newRecorder(file string, steps []contract.Step) *recorder {
	return &recorder{file: file, steps: steps, r: contract.Result{Version: contract.ResultVersion}}
}

// set records the present outcome of a step.
func (rec *recorder) set(s contract.StepResult) {
	if s.Index < len(rec.steps) {
		s.Name, s.User = rec.steps[s.Index].Name, rec.steps[s.Index].User
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	i := slices.IndexFunc(rec.r.Steps, func(old contract.StepResult) bool { return old.Index == s.Index })
	if i < 0 {
		rec.r.Steps = append(rec.r.Steps, s)
	} else {
		rec.r.Steps[i] = s
	}
	rec.write()
}

// outcome records a step that runs nothing, and returns its error.
func (rec *recorder) outcome(index int, err error) error {
	s := contract.StepResult{Index: index}
	if err != nil {
		s.ExitCode, s.Error = 1, err.Error()
	}
	rec.set(s)
	return err
}

func (rec *recorder) over(name string) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.r.Over = append(rec.r.Over, name)
	rec.write()
}

func (rec *recorder) finish() {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.r.Done = true
	rec.write()
}

// abandon records for steps that still run why their end will not be reported. Nothing is
// reported after it.
func (rec *recorder) abandon(why string) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for i := range rec.r.Steps {
		if s := &rec.r.Steps[i]; s.Running {
			s.Running, s.ExitCode, s.Error = false, max(s.ExitCode, 1), why
		}
	}
	rec.write()
	rec.closed = true
}

func (rec *recorder) save() {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.write()
}

// write replaces the file. If the results cannot be written, the program
// continues.
func (rec *recorder) write() {
	if rec.closed {
		return
	}
	if data, err := json.Marshal(rec.r); err == nil {
		_ = report(rec.file, data)
	}
}

// report replaces a file in a folder that every user of the device can write.
func report(file string, data []byte) error {
	return atomicfile.Copy(file, 0o644, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - keepOutput; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

// String is the text, without a character that the cut has broken.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	data := t.data
	for len(data) > 0 && !utf8.RuneStart(data[0]) {
		data = data[1:]
	}
	return string(data)
}
