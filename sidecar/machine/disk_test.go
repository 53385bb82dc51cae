package machine

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// container is a file system that a launcher starts in: fresh each time, but for the folder.
type container struct {
	t            *testing.T
	root, kept   string
	image        string
	created, log bytes.Buffer
}

func newContainer(t *testing.T, kept, image string) *container {
	c := &container{t: t, root: t.TempDir(), kept: kept}
	c.image = filepath.Join(c.root, "os.qcow2")
	if err := os.WriteFile(c.image, []byte(image), 0o644); err != nil {
		t.Fatal(err)
	}
	// As in an image, and not when the test ran.
	if err := os.Chtimes(c.image, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	return c
}

// start creates the overlay as a launcher does, and returns its content.
func (c *container) start(fails error) (string, error) {
	c.t.Helper()
	overlay := filepath.Join(c.root, "os-overlay.qcow2")
	d := Disks{Dir: c.kept, Log: &c.log, Run: func(args []string) error {
		c.created.WriteString(args[0])
		if fails != nil {
			_ = os.WriteFile(overlay, []byte("half"), 0o644)
			return fails
		}
		return os.WriteFile(overlay, []byte("fresh"), 0o644)
	}}
	if err := d.QemuImg([]string{"create", "-f", "qcow2", "-F", "qcow2", "-b", c.image, overlay}); err != nil {
		return "", err
	}
	text, err := os.ReadFile(overlay)
	return string(text), err
}

func (c *container) save(text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.root, "os-overlay.qcow2"), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// moved makes the paths of two containers the same, as they are in containers.
func moved(t *testing.T, c *container, image string) *container {
	t.Helper()
	next := newContainer(t, c.kept, image)
	if err := errors.Join(os.RemoveAll(c.root), os.Rename(next.root, c.root)); err != nil {
		t.Fatal(err)
	}
	next.root, next.image = c.root, c.image
	return next
}

// TestDiskStays: what a virtual machine wrote is there when its container starts again.
func TestDiskStays(t *testing.T) {
	c := newContainer(t, t.TempDir(), "release 1")
	if text, err := c.start(nil); text != "fresh" || err != nil {
		t.Fatalf("%q, %v", text, err)
	}
	c.save("configured")
	again := moved(t, c, "release 1")
	if text, err := again.start(nil); text != "configured" || err != nil || again.created.Len() > 0 {
		t.Errorf("%q, %v, qemu-img %q", text, err, again.created.String())
	}
	other := moved(t, again, "release 1.1")
	if text, err := other.start(nil); text != "fresh" || err != nil {
		t.Errorf("a new image: %q, %v", text, err)
	}
	if old, _ := filepath.Glob(filepath.Join(c.kept, "*.old")); len(old) != 1 || !strings.Contains(other.log.String(), old[0]) {
		t.Errorf("set aside: %q; said: %q", old, other.log.String())
	}
}

// TestDiskIsComplete: an overlay whose creation failed is created again.
func TestDiskIsComplete(t *testing.T) {
	c := newContainer(t, t.TempDir(), "release 1")
	full := errors.New("no space left on device")
	if _, err := c.start(full); !errors.Is(err, full) {
		t.Fatal(err)
	}
	again := moved(t, c, "release 1")
	if text, err := again.start(nil); text != "fresh" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func TestOtherCommandsPass(t *testing.T) {
	for _, args := range [][]string{
		{"info", "--output", "json", "/os.qcow2"},
		{"create", "-f", "qcow2", "/tftpboot/cf1_A.qcow2", "1G"},
		{"create", "-b", "/os.qcow2", "/a.qcow2", "1G"},
		{},
	} {
		var got []string
		d := Disks{Dir: t.TempDir(), Run: func(args []string) error { got = append([]string{}, args...); return nil }}
		if err := d.QemuImg(args); err != nil || !reflect.DeepEqual(got, args) {
			t.Errorf("%q: ran %q, %v", args, got, err)
		}
	}
}
