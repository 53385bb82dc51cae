// Package licenses collects what the licences of linked code ask for: their texts, and
// the notices next to them. What is linked is read from the module graph.
package licenses

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Module is a module that is linked, or Go's standard library.
type Module struct {
	Path, Version string
	// License is its SPDX identifier, "" for one that is not recognised. A module with
	// several has them all.
	License string
	// Texts are the licences and notices, sorted by name.
	Texts []Text
}

// Text is one file of a module.
type Text struct{ Name, Content string }

// Platform is what packages are built for.
type Platform struct{ OS, Arch string }

// Platforms are those that c9s is built for (make cross).
var Platforms = []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// listed is the output of go list for a package.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Dir string }
	}
}

// Linked returns the modules that packages link on any of the platforms, the standard
// library first, the others by path. dir is in the module of the packages. It needs go.
func Linked(ctx context.Context, dir string, platforms []Platform, packages ...string) ([]Module, error) {
	found := map[string]*Module{}
	texts := map[string]map[string]string{}
	for _, p := range platforms {
		list, err := goList(ctx, dir, p, packages)
		if err != nil {
			return nil, err
		}
		for _, pkg := range list {
			m := pkg.Module
			if pkg.Standard || m == nil || m.Main || strings.HasPrefix(m.Path, own) {
				continue
			}
			root := m.Dir
			if m.Replace != nil && root == "" {
				root = m.Replace.Dir
			}
			if found[m.Path] == nil {
				found[m.Path] = &Module{Path: m.Path, Version: m.Version}
				texts[m.Path] = map[string]string{}
			}
			if err := collect(root, pkg.Dir, texts[m.Path]); err != nil {
				return nil, err
			}
		}
	}
	std, err := standard(ctx, dir)
	if err != nil {
		return nil, err
	}
	out := []Module{std}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		m := *found[path]
		for _, name := range slices.Sorted(maps.Keys(texts[path])) {
			m.Texts = append(m.Texts, Text{name, texts[path][name]})
		}
		m.License = identify(m.Texts)
		out = append(out, m)
	}
	return out, nil
}

// own is the path of c9s' own modules.
const own = "github.com/c9s-lab/c9s"

func goList(ctx context.Context, dir string, p Platform, packages []string) ([]listed, error) {
	out, err := goCommand(ctx, dir, []string{"CGO_ENABLED=0", "GOOS=" + p.OS, "GOARCH=" + p.Arch},
		append([]string{"list", "-deps", "-json=Dir,Standard,Module"}, packages...)...)
	if err != nil {
		return nil, err
	}
	var list []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var one listed
		if err := dec.Decode(&one); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		list = append(list, one)
	}
}

func goCommand(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return out, nil
}

// isLicense matches the names of licences and of what they ask to be passed on.
var isLicense = regexp.MustCompile(`(?i)^(?:un)?(?:licen[cs]e|copying|copyright|notice|patents)(?:[.-][a-z0-9.-]+)?$`)

// collect adds the licences of a package's folder, and of those above it in its module.
func collect(root, dir string, into map[string]string) error {
	for at := dir; ; at = filepath.Dir(at) {
		entries, err := os.ReadDir(at)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !isLicense.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			name, err := filepath.Rel(root, filepath.Join(at, e.Name()))
			if err != nil {
				return err
			}
			if _, have := into[filepath.ToSlash(name)]; have {
				continue
			}
			data, err := os.ReadFile(filepath.Join(at, e.Name()))
			if err != nil {
				return err
			}
			into[filepath.ToSlash(name)] = string(data)
		}
		if at == root || at == filepath.Dir(at) {
			return nil
		}
	}
}

func standard(ctx context.Context, dir string) (Module, error) {
	out, err := goCommand(ctx, dir, nil, "env", "GOROOT")
	if err != nil {
		return Module{}, err
	}
	texts := map[string]string{}
	root := strings.TrimSpace(string(out))
	if err := collect(root, root, texts); err != nil {
		return Module{}, err
	}
	m := Module{Path: "Go standard library"}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		m.Texts = append(m.Texts, Text{name, texts[name]})
	}
	m.License = identify(m.Texts)
	return m, nil
}

// marks are words that only one licence has.
var marks = []struct {
	license string
	words   []string
}{
	{"Apache-2.0", []string{"Apache License", "Version 2.0"}},
	{"MPL-2.0", []string{"Mozilla Public License Version 2.0"}},
	{"MPL-2.0", []string{"Mozilla Public License, version 2.0"}},
	{"BSD-3-Clause", []string{"Redistribution and use in source and binary forms", "endorse or promote products"}},
	{"BSD-2-Clause", []string{"Redistribution and use in source and binary forms", "!endorse or promote products"}},
	{"ISC", []string{"Permission to use, copy, modify, and/or distribute this software for any purpose"}},
	{"ISC", []string{"Permission to use, copy, modify, and distribute this software for any purpose"}},
	{"MIT", []string{"Permission is hereby granted, free of charge, to any person obtaining a copy"}},
	{"CC0-1.0", []string{"CC0 1.0 Universal"}},
	{"Unlicense", []string{"This is free and unencumbered software released into the public domain"}},
}

// identify returns the SPDX identifiers of the licences in texts.
func identify(texts []Text) string {
	found := map[string]bool{}
	for _, t := range texts {
		content := strings.Join(strings.Fields(t.Content), " ")
		for _, m := range marks {
			if !slices.ContainsFunc(m.words, func(w string) bool {
				word, not := strings.CutPrefix(w, "!")
				return strings.Contains(content, word) == not
			}) {
				found[m.license] = true
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " AND ")
}

// All returns the texts of all modules, one after the other.
func All(modules []Module) []byte {
	var b bytes.Buffer
	b.WriteString("The programs of c9s contain the following software, under the licences given with each.\n")
	for _, m := range modules {
		for _, t := range m.Texts {
			fmt.Fprintf(&b, "\n%s\n%s: %s\n%[1]s\n\n%s\n", strings.Repeat("-", 80), strings.TrimSpace(m.Path+" "+m.Version), t.Name, strings.TrimRight(t.Content, "\n"))
		}
	}
	return b.Bytes()
}
