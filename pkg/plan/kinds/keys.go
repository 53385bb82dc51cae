package kinds

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The types of a Key.
const (
	KeyText    = "text"
	KeyInteger = "integer"
	KeyBoolean = "boolean"
	// KeyList is a list of texts, KeyFiles one of paths, KeyEntries one of
	// mappings with Fields.
	KeyList    = "list"
	KeyFiles   = "files"
	KeyEntries = "entries"
	// KeyFile is the path of a file, or one of Values.
	KeyFile = "file"
)

var keyTypes = []string{KeyText, KeyInteger, KeyBoolean, KeyList, KeyFiles, KeyFile, KeyEntries}

// Key is a key that a topology can set on nodes of a kind. The value is that of the
// most specific of node, group, kind and defaults, as a whole. Templates see it in
// .Keys: text, an integer, a boolean, or a list.
type Key struct {
	// Type is one of the constants above.
	Type string `yaml:"type" json:"type"`
	// Values are the texts that are allowed, all if empty.
	Values []string `yaml:"values" json:"values,omitempty"`
	// Match is a regular expression (RE2) that a text must match as a whole.
	Match string `yaml:"match" json:"match,omitempty"`
	// Min and Max bound an integer, where Max is not 0.
	Min int `yaml:"min" json:"min,omitempty"`
	Max int `yaml:"max" json:"max,omitempty"`
	// Fields are the keys of an entry; Required ones must be there.
	Fields   map[string]Key `yaml:"fields" json:"fields,omitempty"`
	Required bool           `yaml:"required" json:"required,omitempty"`
	// Env is the environment variable that carries the value to the device or to
	// containerlab's own code, and is not in .Keys then. With EnvWhen, it is set to
	// "true" if the value is that text, and else removed.
	Env     string `yaml:"env" json:"env,omitempty"`
	EnvWhen string `yaml:"envWhen" json:"envWhen,omitempty"`
	// EnvFormer: topologies set Env before the key existed.
	EnvFormer bool `yaml:"envFormer" json:"envFormer,omitempty"`
	// ProcessEnv is the environment variable of containerlab's own process that had a
	// boolean's other value before the key existed: if it is set, and ProcessWhen is "" or
	// its value in lower case.
	ProcessEnv  string `yaml:"processEnv" json:"processEnv,omitempty"`
	ProcessWhen string `yaml:"processWhen" json:"processWhen,omitempty"`
	// Since is the release of containerlab that brought the key.
	Since string `yaml:"since" json:"since,omitempty"`
	// Meaning says what the key does, Default what holds without it.
	Meaning string `yaml:"meaning" json:"meaning,omitempty"`
	Default string `yaml:"default" json:"default,omitempty"`
	Example string `yaml:"example" json:"example,omitempty"`

	match *regexp.Regexp
}

// Allows reports whether a text is among Values and matches Match.
func (k *Key) Allows(text string) bool {
	if len(k.Values) > 0 && !slices.Contains(k.Values, text) {
		return false
	}
	return k.match == nil || k.match.MatchString(text)
}

// Wants says what the value must be, for messages.
func (k *Key) Wants() string {
	switch {
	case k.Type == KeyFile && len(k.Values) > 0:
		return "the path of a file, or " + strings.Join(k.Values, " or ")
	case k.Type == KeyFile:
		return "the path of a file"
	case len(k.Values) > 0:
		return "one of " + strings.Join(k.Values, ", ")
	case k.Match != "":
		return "text like " + k.Example
	case k.Type == KeyInteger && k.Max > 0:
		return fmt.Sprintf("a whole number from %d to %d", k.Min, k.Max)
	}
	return map[string]string{
		KeyText: "text", KeyInteger: "a whole number", KeyBoolean: "true or false", KeyList: "a list",
		KeyFiles: "a list of paths", KeyEntries: "a list of mappings",
	}[k.Type]
}

// compileKeys prepares the regular expressions of keys.
func compileKeys(keys map[string]Key) error {
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		k := keys[name]
		if !slices.Contains(keyTypes, k.Type) {
			return fmt.Errorf("keys.%s.type: %q is none of %s", name, k.Type, strings.Join(keyTypes, ", "))
		}
		if (k.Type == KeyEntries) != (len(k.Fields) > 0) {
			return fmt.Errorf("keys.%s: fields belong to the type %s", name, KeyEntries)
		}
		if k.Match != "" {
			var err error
			if k.match, err = regexp.Compile("^(?:" + k.Match + ")$"); err != nil {
				return fmt.Errorf("keys.%s.match: %w", name, err)
			}
		}
		if err := compileKeys(k.Fields); err != nil {
			return fmt.Errorf("keys.%s: %w", name, err)
		}
		keys[name] = k
	}
	return nil
}

// KindsWithKey are the names of the kinds that have a key, sorted.
func (c *Catalogue) KindsWithKey(key string) []string {
	var out []string
	for _, k := range c.kinds {
		if _, ok := k.Keys[key]; ok {
			out = append(out, k.Name)
		}
	}
	return out
}

// KeyNames are the names of all keys of kinds, sorted.
func (c *Catalogue) KeyNames() []string {
	all := map[string]bool{}
	for _, k := range c.kinds {
		for name := range k.Keys {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
