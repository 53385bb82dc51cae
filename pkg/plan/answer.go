package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// decodeAnswer reads exactly one Response from a line. The version comes first, since another
// one may have another shape.
func decodeAnswer(output []byte) (*Response, *problem) {
	var head struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(output, &head); err != nil {
		switch {
		case len(bytes.TrimSpace(output)) == 0:
			return nil, failed("it ended without an answer")
		case strings.Contains(err.Error(), "unexpected end"):
			return nil, failed("the answer is cut off after %d bytes", len(output))
		}
		return nil, failed("the answer is not one JSON document: %v", err)
	}
	if head.Version != ProtocolVersion {
		return nil, &problem{code: CodePlannerVersion, text: fmt.Sprintf("it speaks version %q, c9s speaks %s", clip(head.Version), ProtocolVersion)}
	}
	answer := &Response{}
	dec := json.NewDecoder(bytes.NewReader(output))
	dec.DisallowUnknownFields()
	if err := dec.Decode(answer); err != nil {
		return nil, failed("the answer does not have the shape of version %s: %v", ProtocolVersion, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, failed("more follows the answer")
	}
	return answer, nil
}

// checkAnswer checks that a plan is for the requested node, stays in the node's folder and
// refers to files that exist.
func checkAnswer(answer *Response, l *lab.Lab, n *lab.Node) *problem {
	p := answer.Plan
	switch {
	case answer.Error != "":
		return failed("%s", clip(answer.Error))
	case p == nil:
		return failed("the answer holds no plan")
	case p.Version != Version:
		return &problem{code: CodePlannerVersion, text: fmt.Sprintf("its plan has version %q, c9s knows %s", p.Version, Version)}
	case p.Node != n.Name:
		return failed("the plan is for node %q", clip(p.Node))
	case answer.Planner == "" || p.Planner == "":
		return failed("the answer does not say who made it")
	}
	return checkPlan(p, l)
}

func checkPlan(p *Plan, l *lab.Lab) *problem {
	known := func(ref *lab.FileRef) bool {
		if ref == nil || ref.Placeholder {
			return true
		}
		_, ok := l.Files[ref.Digest]
		return ok
	}
	for _, f := range p.Files {
		if !inFolder(f.Path) || f.Path == "." {
			return failed("file %q is not in the node's folder", f.Path)
		}
		if !known(f.Ref) {
			return failed("file %s refers to bytes that the lab does not have", f.Path)
		}
	}
	for _, c := range p.Containers {
		if c.Image == "" {
			return failed("container %q has no image", c.Name)
		}
		for _, m := range c.Mounts {
			if !path.IsAbs(m.Target) || m.Path != "" && !inFolder(m.Path) {
				return failed("mount of %q at %q is not possible", m.Path, m.Target)
			}
		}
	}
	for i, s := range p.Steps {
		actions := 0
		for _, there := range []bool{s.Run != nil, s.Wait != nil, s.Write != nil, s.CLI != nil} {
			if there {
				actions++
			}
		}
		if actions != 1 || s.Write != nil && !known(s.Write.Ref) {
			return failed("step %d does not say one thing to do", i+1)
		}
		if !s.hasCommand() {
			return failed("step %d has no command", i+1)
		}
	}
	return nil
}

// hasCommand reports whether the step is a file or has a command to run.
func (s Step) hasCommand() bool {
	var argv []string
	switch {
	case s.Run != nil:
		argv = s.Run.Argv
	case s.Wait != nil:
		argv = s.Wait.Argv
	case s.CLI != nil:
		argv = s.CLI.Argv
	default:
		return true
	}
	return len(argv) > 0 && argv[0] != ""
}

// inFolder reports whether a path is relative and does not leave the folder it starts in.
func inFolder(p string) bool {
	clean := path.Clean(p)
	return p != "" && !path.IsAbs(p) && clean != ".." && !strings.HasPrefix(clean, "../")
}
