package labtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// command adds a check of the output of a command.
func (p *planner) command(c *Command) {
	nodes := p.running(c.Pos, c.Nodes)
	s := step{group: "commands"}
	text := strings.Join(c.Command, " ")
	if len(c.Command) == 3 && c.Command[0] == "sh" {
		text = c.Command[2]
	}
	if c.Name != "" {
		text = c.Name
	}
	for _, n := range nodes {
		s.cases = append(s.cases, n.Name+": "+short(text))
	}
	s.try = func(ctx context.Context) []outcome {
		out := make([]outcome, len(nodes))
		each(nodes, func(i int) {
			got, err := p.lab.Exec(ctx, nodes[i], c.Command)
			if err == nil {
				err = c.judge(got)
			}
			out[i].err = err
		})
		return out
	}
	p.add(c.Common, s)
}

// judge compares the output of a command with what is expected.
func (c *Command) judge(got Output) error {
	if got.Code != c.ExitCode {
		return fmt.Errorf("exit code %d, want %d%s", got.Code, c.ExitCode, because(short(got.Err+got.Out)))
	}
	for _, text := range c.Contains {
		if !strings.Contains(got.Out, text) {
			return fmt.Errorf("the output lacks %q: %s", text, short(got.Out))
		}
	}
	for _, text := range c.Excludes {
		if strings.Contains(got.Out, text) {
			return fmt.Errorf("the output has %q", text)
		}
	}
	if c.Matches != "" && !regexp.MustCompile(c.Matches).MatchString(got.Out) { // compiled before, by Load
		return fmt.Errorf("the output does not match %q: %s", c.Matches, short(got.Out))
	}
	if len(c.JSON) == 0 {
		return nil
	}
	value, err := decodeJSON(got.Out)
	if err != nil {
		return err
	}
	for _, j := range c.JSON {
		if err := j.judge(value); err != nil {
			return fmt.Errorf("%s: %w", j.Path, err)
		}
	}
	return nil
}

// decodeJSON reads the output of a command.
func decodeJSON(text string) (value any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("the output is not JSON: %w: %s", err, short(text))
	}
	return value, nil
}

// judge compares what the path finds with what is expected.
func (j *JSONCheck) judge(value any) error {
	texts, err := findJSON(j.Path, value)
	if err != nil {
		return err
	}
	text := strings.Join(texts, " ")
	switch {
	case j.Count != nil && len(texts) != *j.Count:
		return fmt.Errorf("%s, want %d: %s", plural(len(texts), "value"), *j.Count, short(text))
	case j.Equals != nil && text != *j.Equals:
		return fmt.Errorf("%q, want %q", text, *j.Equals)
	case j.Matches != "" && !regexp.MustCompile(j.Matches).MatchString(text):
		return fmt.Errorf("%q does not match %q", text, j.Matches)
	}
	return nil
}

// findJSON returns what a JSON path finds, as texts. The library panics for some values that
// a path does not fit.
func findJSON(path string, value any) (texts []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the path does not fit the output: %v", r)
		}
	}()
	parsed := jsonpath.New("").AllowMissingKeys(true)
	if err := parsed.Parse(path); err != nil {
		return nil, err
	}
	found, err := parsed.FindResults(value)
	if err != nil {
		return nil, err
	}
	for _, list := range found {
		for _, v := range list {
			text, err := jsonText(v.Interface())
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
	}
	return texts, nil
}

// jsonText is a text itself, and everything else as JSON.
func jsonText(value any) (string, error) {
	if text, ok := value.(string); ok {
		return text, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}
