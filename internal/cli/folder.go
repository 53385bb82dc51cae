package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// folderState is what an earlier render left in a folder that the next one keeps.
type folderState struct {
	// lab is the name of the lab that the folder holds, "" for none.
	lab         string
	allocations *lab.Allocations
	wireKey     []byte
	// lost reports whether an earlier render was here, and its allocations are not.
	lost bool
}

// readFolder reads back allocations and wire key; a folder that does not exist, or
// that c9s did not write, has none.
func readFolder(dir string) (folderState, error) {
	var state folderState
	if dir == "" {
		return state, nil
	}
	var parts []struct {
		name string
		data []byte
	}
	err := eachDocument(filepath.Join(dir, "lab.yaml"), func(d document) {
		if d.Kind == "ConfigMap" && strings.HasPrefix(d.Metadata.Name, contract.AllocationsName(0)) {
			state.lab = d.Metadata.Annotations[contract.AnnotationLabName]
			for _, text := range d.Data {
				parts = append(parts, struct {
					name string
					data []byte
				}{d.Metadata.Name, []byte(text)})
			}
		}
	})
	if err != nil {
		return state, fmt.Errorf("%w\n%s holds the addresses and ids of the lab: restore it, or resolve its conflict (keep either side; the next render completes it)", err, filepath.Join(dir, "lab.yaml"))
	}
	slices.SortFunc(parts, func(a, b struct {
		name string
		data []byte
	}) int {
		return strings.Compare(a.name, b.name)
	})
	if len(parts) > 0 {
		all := make([][]byte, len(parts))
		for i, p := range parts {
			all[i] = p.data
		}
		a, err := lab.JoinAllocations(all...)
		if err != nil {
			return state, fmt.Errorf("reading the allocations of the previous render in %s: %w", dir, err)
		}
		state.allocations = &a
	}
	_, missing := os.Stat(filepath.Join(dir, contract.FolderList))
	state.lost = len(parts) == 0 && missing == nil
	err = eachDocument(filepath.Join(dir, "secrets", "lab.yaml"), func(d document) {
		if d.Kind == "Secret" && d.Metadata.Name == contract.WireKeySecret {
			for _, text := range d.Data {
				state.wireKey, _ = base64.StdEncoding.DecodeString(text)
			}
		}
	})
	return state, err
}

// document is the part of a manifest that is read back.
type document struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name        string            `yaml:"name"`
		Annotations map[string]string `yaml:"annotations"`
	} `yaml:"metadata"`
	Data map[string]string `yaml:"data"`
}

func eachDocument(name string, visit func(document)) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	dec := yaml.NewDecoder(file)
	for {
		var d document
		err := dec.Decode(&d)
		if err != nil {
			if err.Error() == "EOF" {
				return nil
			}
			return fmt.Errorf("%s: %w", name, err)
		}
		visit(d)
	}
}
