package dns

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/link"
)

// Conf is the resolv.conf that the kubelet gave the Pod, and whether the devices have the
// resolver's in its place.
type Conf struct {
	Servers []string `json:"servers"`
	Search  []string `json:"search,omitempty"`
	Given   bool     `json:"given,omitempty"`

	file, path string
	text       []byte
}

// maxConf is the most that resolv.conf may hold, in bytes.
const maxConf = 64 << 10

// Load reads the kubelet's resolv.conf at path, once for a Pod: it is kept in file, since
// later the resolver and the devices write theirs at path.
func Load(file, path string) (*Conf, error) {
	c := &Conf{file: file, path: path}
	data, err := os.ReadFile(file)
	known := err == nil && json.Unmarshal(data, c) == nil
	if known && c.Given {
		return c, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return c, nil // a Pod without DNS
	}
	defer f.Close()
	if c.text, err = io.ReadAll(io.LimitReader(f, maxConf)); err != nil {
		return c, fmt.Errorf("read %s: %w", path, err)
	}
	if known {
		return c, nil
	}
	for line := range strings.Lines(string(c.text)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "nameserver":
			if len(c.Servers) < 3 {
				c.Servers = append(c.Servers, net.JoinHostPort(words[1], "53"))
			}
		case "search", "domain":
			c.Search = words[1:]
		}
	}
	return c, c.save()
}

func (c *Conf) save() error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return link.WriteFile(c.file, data)
}

// Give writes the resolver's address in place of the cluster's DNS servers, before the
// devices start and never again: they may write the file too. All containers of a Pod
// have the same file, but for nodes with DNS settings of their own.
func (c *Conf) Give(resolver netip.Addr) error {
	if c.Given || c.text == nil || len(c.Servers) == 0 {
		return nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "nameserver %s\n", resolver)
	for line := range bytes.Lines(c.text) {
		if words := bytes.Fields(line); len(words) == 0 || string(words[0]) != "nameserver" {
			out.Write(bytes.TrimRight(line, "\n"))
			out.WriteByte('\n')
		}
	}
	c.Given = true
	if err := c.save(); err != nil {
		return err
	}
	if err := overwrite(c.path, out.Bytes()); err != nil {
		return fmt.Errorf("give the devices a resolver: %w", err)
	}
	return nil
}

// overwrite writes in place, since the file is a mount. In containers with a read-only root,
// such as the sidecar's, the mount is read-only, but not in those of the devices.
func overwrite(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, unix.EROFS) {
		if err = unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err == nil {
			f, err = os.OpenFile(path, os.O_WRONLY, 0)
		}
	}
	if err != nil {
		return err
	}
	// The new text first and then the cut, so that no reader finds an empty file.
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	return errors.Join(err, f.Close())
}
