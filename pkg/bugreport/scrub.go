package bugreport

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// Removed is what a secret is replaced by.
const Removed = "[removed]"

// Scrubber removes secrets from texts: values that it knows, and what looks like one.
type Scrubber struct{ values []string }

// secretName finds names of secrets: of variables, flags and keys.
var secretName = regexp.MustCompile(`(?i)pass(word|wd|phrase)?|secret|token|api_?key|private_?key|credential|license|auth`)

// shortest is the length of the shortest value that is removed wherever it is: shorter ones are
// in many words.
const shortest = 4

// Note notes the value of a variable or of an argument, if its name is that of a secret.
func (s *Scrubber) Note(name, value string) {
	if flag, rest, ok := strings.Cut(value, "="); ok && secretName.MatchString(flag) {
		s.know(rest)
	}
	if secretName.MatchString(name) {
		s.know(value)
	}
}

func (s *Scrubber) know(value string) {
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= shortest && !slices.Contains(s.values, line) {
			s.values = append(s.values, line)
		}
	}
}

// shapes are what secrets look like. The first group, where there is one, stays.
var shapes = []*regexp.Regexp{
	regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`),                                                        // a JSON web token
	regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`),                                                                                      // of AWS
	regexp.MustCompile(`\b(?:ghp|gho|ghs|ghr|github_pat|glpat)[_-][A-Za-z0-9_-]{16,}`),                                                       // of GitHub, GitLab
	regexp.MustCompile(`((?i)\b(?:password|secret|community|pre-shared-key|authentication-key|md5)\s+(?:\d+\s+)?)[^\s"',;:=\[][^\s"',;]*`),   // configurations of routers
	regexp.MustCompile(`\$(?:1|2[aby]|5|6|y|7|9|14|8)\$[^\s"'\\,]{4,}`),                                                                      // hashes of crypt(3) and of routers
	regexp.MustCompile(`((?i)\b[a-z][a-z0-9+.-]*://[^\s/:@"']*:)[^\s/@"']+@`),                                                                // a URL with a password
	regexp.MustCompile(`((?i)\b(?:bearer|basic)\s+)[A-Za-z0-9+/_.~-]{8,}={0,2}`),                                                             // of HTTP
	regexp.MustCompile(`((?i)(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|private[_-]?key|community)["']?\s*[:=]\s*["']?)[^\s"',;]+`), // name: value
}

// Clean returns a text without secrets.
func (s *Scrubber) Clean(data []byte) []byte {
	for _, shape := range shapes {
		keep := Removed
		if shape.NumSubexp() > 0 && !strings.HasPrefix(shape.String(), "(?s)") {
			keep = "${1}" + Removed
		}
		data = shape.ReplaceAll(data, []byte(keep))
	}
	values := slices.Clone(s.values)
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // one may be in another
	for _, v := range values {
		data = bytes.ReplaceAll(data, []byte(v), []byte(Removed))
	}
	return data
}
