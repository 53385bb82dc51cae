package licenses

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite NOTICE")

// allowed are the licences under which code may be linked into c9s.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

const noticeHead = `c9s
Licensed under the Apache License, Version 2.0 (see LICENSE).

The programs c9s, c9s-sidecar and c9s-controller contain the software below. The texts
of its licences, and the notices that they ask to be passed on, are in the file LICENSES
beside each program and in c9s' image. This list is generated from the module graph.

`

// TestNotice holds NOTICE against what is linked, on every platform. Each module has the
// text of a licence that is allowed.
func TestNotice(t *testing.T) {
	modules, err := Linked(t.Context(), "../..", Platforms, "./cmd/c9s", "./cmd/c9s-sidecar", "./cmd/c9s-controller")
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) < 50 {
		t.Errorf("%d modules are linked, which is too few to be true", len(modules))
	}
	for _, m := range modules {
		if len(m.Texts) == 0 {
			t.Errorf("%s has no licence", m.Path)
		}
		for _, l := range strings.Split(m.License, " AND ") {
			if !slices.Contains(allowed, l) {
				t.Errorf("%s is under the licence %q, which is not allowed", m.Path, l)
			}
		}
	}
	want := noticeHead + table(modules)
	const file = "../../NOTICE"
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("NOTICE is not what is linked (go test ./internal/licenses -update):\n%s", diff)
	}
}

func TestIdentify(t *testing.T) {
	for want, text := range map[string]string{
		"":             "All rights reserved.",
		"MIT":          "Permission is hereby granted, free of\n charge, to any person obtaining a copy",
		"BSD-2-Clause": "Redistribution and use in source and binary forms, with",
		"BSD-3-Clause": "Redistribution and use in source and binary forms, with ... to endorse or promote products",
		"Apache-2.0":   "Apache License\n Version 2.0, January 2004",
	} {
		if got := identify([]Text{{"LICENSE", text}}); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// table returns a line for each module.
func table(modules []Module) string {
	var b strings.Builder
	for _, m := range modules {
		license := m.License
		if license == "" {
			license = "?"
		}
		fmt.Fprintf(&b, "%s %s\n", strings.TrimSpace(m.Path+" "+m.Version), license)
	}
	return b.String()
}
