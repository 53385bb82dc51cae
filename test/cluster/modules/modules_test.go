package modules

import (
	"os"
	"regexp"
	"testing"

	"golang.org/x/mod/modfile"
)

// clients are the modules behind client-go that take long to compile, or that those depend on.
var clients = regexp.MustCompile(`^(k8s\.io/.*|sigs\.k8s\.io/(json|randfill|structured-merge-diff/.*|yaml)|golang\.org/x/(net|oauth2|sys|term|text|time)|github\.com/(fxamacker/cbor/.*|go-logr/logr|go-openapi/.*|json-iterator/go)|google\.golang\.org/protobuf|go\.yaml\.in/yaml/.*)$`)

// TestShared holds the modules of the cluster's programs, of c9s-cluster and of c9s to the same
// versions of what client-go consists of, so that it is compiled once for all.
func TestShared(t *testing.T) {
	shared := built(t, "programs.mod")
	for _, other := range []string{"containerd.mod", "../go.mod", "../../../go.mod"} {
		compared := 0
		for path, version := range built(t, other) {
			if !clients.MatchString(path) || shared[path] == "" || other == "containerd.mod" && newer[path] {
				continue
			}
			compared++
			if version != shared[path] {
				t.Errorf("%s has %s %s, programs.mod %s: set both to the higher one", other, path, version, shared[path])
			}
		}
		if compared < 10 {
			t.Errorf("%s: only %d modules were compared", other, compared)
		}
	}
}

// newer are the modules of the CRI, which containerd needs in a newer version.
var newer = map[string]bool{"k8s.io/cri-api": true, "k8s.io/cri-streaming": true, "k8s.io/streaming": true}

// built returns the versions that a go.mod text selects, by module.
func built(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range f.Require {
		out[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range f.Replace {
		if _, required := out[r.Old.Path]; required {
			out[r.Old.Path] = r.New.Version
		}
	}
	return out
}
