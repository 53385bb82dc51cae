package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A descriptor is an entry of an OCI layout's index.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Annotations map[string]string `json:"annotations"`
}

// standIns maps repositories that public labs name to the test image that can
// replace them, whatever the tag. An image of the very name wins.
var standIns = map[string]string{
	"docker.io/frrouting/frr":            "c9s.test/frr:latest",
	"quay.io/frrouting/frr":              "c9s.test/frr:latest",
	"docker.io/library/alpine":           "c9s.test/linux:latest",
	"docker.io/library/debian":           "c9s.test/linux:latest",
	"docker.io/library/nginx":            "c9s.test/linux:latest",
	"docker.io/nicolaka/netshoot":        "c9s.test/linux:latest",
	"docker.io/praqma/network-multitool": "c9s.test/linux:latest",
	"docker.io/wbitt/network-multitool":  "c9s.test/linux:latest",
	"ghcr.io/hellt/network-multitool":    "c9s.test/linux:latest",
	"ghcr.io/nicolaka/netshoot":          "c9s.test/linux:latest",
	"ghcr.io/srl-labs/alpine":            "c9s.test/linux:latest",
	"ghcr.io/srl-labs/network-multitool": "c9s.test/linux:latest",
	"docker.io/pierky/bird":              "c9s.test/bird:latest",
	"ghcr.io/srl-labs/bird":              "c9s.test/bird:latest",
}

// StandIn is the test image that replaces a reference, if one does.
func StandIn(reference string) (string, bool) {
	repository, _ := splitTag(reference)
	name, ok := standIns[repository]
	return name, ok
}

var errUnknown = errors.New("no such image was loaded")

// resolve finds the image of a full reference: one of that very name, or a
// stand-in.
func (r Registry) resolve(reference string) (descriptor, error) {
	if d, err := r.lookup(reference); err == nil {
		return d, nil
	}
	if name, ok := StandIn(reference); ok {
		if d, err := r.lookup(name); err == nil {
			return d, nil
		}
		return descriptor{}, fmt.Errorf("%w, nor its stand-in %s", errUnknown, name)
	}
	return descriptor{}, errUnknown
}

func (r Registry) lookup(reference string) (descriptor, error) {
	indexes, err := filepath.Glob(filepath.Join(r.Dir, "*", "index.json"))
	if err != nil {
		return descriptor{}, err
	}
	for _, path := range indexes {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var index struct {
			Manifests []descriptor `json:"manifests"`
		}
		if err := json.Unmarshal(text, &index); err != nil {
			return descriptor{}, fmt.Errorf("reading %s: %w", path, err)
		}
		for _, d := range index.Manifests {
			if FullName(d.Annotations[NameAnnotation]) == reference {
				return d, nil
			}
		}
	}
	return descriptor{}, errUnknown
}

// fullReference is host/repository:tag, with the host that a missing one means.
func fullReference(host, repository, tag string) string {
	if host == "" {
		return FullName(repository + ":" + tag)
	}
	return host + "/" + repository + ":" + tag
}

// FullName completes a reference as container engines do: no host is Docker Hub,
// no tag is latest.
func FullName(reference string) string {
	repository, tag := splitTag(reference)
	first, _, several := strings.Cut(repository, "/")
	switch {
	case !several:
		repository = "docker.io/library/" + repository
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		repository = "docker.io/" + repository
	}
	return repository + ":" + tag
}

func splitTag(reference string) (repository, tag string) {
	at := strings.LastIndex(reference, ":")
	if at < 0 || strings.Contains(reference[at:], "/") {
		return reference, "latest"
	}
	return reference[:at], reference[at+1:]
}
