package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// applied is what was last applied to one interface. It distinguishes a change of
// links.json, which is applied, from a change that the device made itself.
type applied struct {
	Spec contract.Interface `json:"spec"`
	// Index is the ifindex of the leg, or of the interface if it has none. Another index
	// means that it was recreated.
	Index int `json:"index"`
}

// memory is the file of all applied interfaces. Without it everything is applied again,
// which is harmless, but addresses that are no longer in links.json would stay.
type memory struct {
	path  string
	items map[string]applied
	dirty bool
}

func loadMemory(path string) *memory {
	m := &memory{path: path, items: map[string]applied{}}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &m.items)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) || m.items == nil {
		m.items = map[string]applied{}
	}
	return m
}

func (m *memory) get(k Key) (applied, bool) {
	a, ok := m.items[k.String()]
	return a, ok
}

func (m *memory) done(spec *contract.Interface, index int) {
	k := KeyOf(spec).String()
	if old, ok := m.items[k]; ok && old.Index == index && reflect.DeepEqual(old.Spec, *spec) {
		return
	}
	m.items[k] = applied{Spec: *spec, Index: index}
	m.dirty = true
}

func (m *memory) forget(key string) {
	if _, ok := m.items[key]; ok {
		delete(m.items, key)
		m.dirty = true
	}
}

func (m *memory) save() error {
	if !m.dirty {
		return nil
	}
	data, err := json.Marshal(m.items)
	if err != nil {
		return err
	}
	if err := WriteFile(m.path, data); err != nil {
		return err
	}
	m.dirty = false
	return nil
}

// WriteFile replaces a state file of the sidecar, and creates its folder.
func WriteFile(path string, data []byte) error {
	if err := atomicfile.Write(path, data, 0o600, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
