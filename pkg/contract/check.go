package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// ParseManifest decodes a manifest and checks that its paths and names stay in their
// folders and that its programs can run. The error has a line for each fault.
func ParseManifest(data []byte) (*Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	if m.Version != ManifestVersion {
		return nil, fmt.Errorf("the manifest has version %.40q but this image supports %q: render the lab with a c9s of the same version as the image, or set --image", m.Version, ManifestVersion)
	}
	return &m, m.check()
}

func (m *Manifest) check() error {
	var errs []error
	for _, v := range m.Volumes {
		errs = append(errs, checkName("volume", v))
	}
	for _, n := range m.Nodes {
		errs = append(errs, checkName("node", n.ID))
		errs = append(errs, checkEntries(n.Entries)...)
		for _, c := range n.Containers {
			errs = append(errs, checkName("container", c.Name), c.Program.check())
			errs = append(errs, checkEntries(c.Payloads)...)
		}
	}
	return errors.Join(errs...)
}

// checkName reports an error unless name can be that of one folder.
func checkName(what, name string) error {
	if name == "." || !filepath.IsLocal(name) || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%.80q cannot be the folder of a %s", name, what)
	}
	return nil
}

func checkEntries(entries []Entry) (errs []error) {
	for _, e := range entries {
		errs = append(errs, checkPath(e.Path))
		for _, c := range e.Chunks {
			errs = append(errs, checkPath(c))
		}
		if e.Size < 0 {
			errs = append(errs, fmt.Errorf("%s has a size of %d bytes", e.Path, e.Size))
		}
	}
	return errs
}

// checkPath reports an error unless p is below the folder that it is relative to.
func checkPath(p string) error {
	if p == "." || !filepath.IsLocal(p) || strings.Contains(p, "\x00") {
		return fmt.Errorf("the path %.80q leaves its folder", p)
	}
	return nil
}

// ParseProgram decodes a program and checks that each of its steps can run.
func ParseProgram(data []byte) (*Program, error) {
	var p Program
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	if p.Version != ProgramVersion {
		return nil, fmt.Errorf("it has version %.40q, but this helper supports %q", p.Version, ProgramVersion)
	}
	return &p, p.check()
}

func (p *Program) check() error {
	var errs []error
	for i, s := range p.Steps {
		if err := s.check(); err != nil {
			errs = append(errs, fmt.Errorf("step %d: %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}

func (s Step) check() error {
	actions := []bool{s.Run != nil, s.Wait != nil, s.Write != nil, s.CLI != nil, s.Over != "", len(s.WaitFor) > 0}
	if n := len(slices.DeleteFunc(actions, func(set bool) bool { return !set })); n != 1 {
		return fmt.Errorf("it has %d actions, want one", n)
	}
	switch {
	case s.Run != nil:
		return checkCommand(s.Run.Argv)
	case s.Wait != nil && (s.Wait.IntervalSeconds < 0 || s.Wait.TimeoutSeconds < 0):
		return errors.New("a time to wait is negative")
	case s.Wait != nil:
		return checkCommand(s.Wait.Argv)
	case s.CLI != nil:
		return checkCommand(s.CLI.Argv)
	case s.Write != nil && s.Write.Payload != "":
		return checkPath(s.Write.Payload)
	}
	return nil
}

func checkCommand(argv []string) error {
	if len(argv) == 0 || argv[0] == "" {
		return errors.New("it has no command")
	}
	return nil
}
