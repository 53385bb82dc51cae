package podnet

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/c9s-lab/c9s/internal/packed"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// maxFile bounds each file that is read, in bytes; a ConfigMap holds at most 1 MiB.
const maxFile = 4 << 20

// maxDirectory bounds the directory, in bytes, unpacked: far more than 10,000 nodes need.
const maxDirectory = 16 << 20

// desired is what the Pod's files say. A file that cannot be read keeps what was
// read of it last: a running lab does not stop for a torn edit.
type desired struct {
	doc      *contract.Links
	digest   string
	manifest *contract.Manifest

	// pods are the management addresses of the lab's other nodes.
	pods  map[netip.Addr]string
	hosts []byte
	// addresses are the Pods' last known addresses.
	addresses map[string][]netip.Addr

	seen map[string][sha256.Size]byte
}

// change holds what is new since the last reading.
type change struct{ links, directory, addresses bool }

// read reads all files.
func (d *desired) read(c *Config) (change, error) {
	if d.seen == nil {
		d.seen = map[string][sha256.Size]byte{}
	}
	var ch change
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	var err error
	ch.links, err = d.readLinks(filepath.Join(c.LinksDir, contract.LinksFile))
	note(err)
	if d.manifest == nil {
		note(d.readManifest(filepath.Join(c.PlanDir, contract.ManifestFile)))
	}
	ch.directory, err = d.readDirectory(c.DirectoryDir)
	note(err)
	ch.addresses, err = d.readAddresses(filepath.Join(c.DirectoryDir, contract.AddressesFile))
	note(err)
	return ch, errors.Join(errs...)
}

// fresh reads a file and reports whether it differs from the last time.
func (d *desired) fresh(path string) ([]byte, bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, false, err
	}
	if len(data) > maxFile {
		return nil, false, fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	sum := sha256.Sum256(data)
	changed := d.seen[path] != sum
	d.seen[path] = sum
	return data, changed, nil
}

func (d *desired) readLinks(path string) (bool, error) {
	data, changed, err := d.fresh(path)
	if err != nil || !changed {
		return false, err
	}
	doc, err := parseLinks(data)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	d.doc, d.digest = doc, contract.LinksDigest(data)
	return true, nil
}

func parseLinks(data []byte) (*contract.Links, error) {
	var doc contract.Links
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if doc.Version != contract.LinksVersion {
		return nil, fmt.Errorf("version %.40q, and this sidecar knows %s: render the lab with the sidecar's version of c9s", doc.Version, contract.LinksVersion)
	}
	return &doc, nil
}

// readManifest is read once: it cannot change while the Pod lives. A Pod without
// one waits for nothing.
func (d *desired) readManifest(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		d.manifest = &contract.Manifest{}
		return nil
	}
	if err != nil {
		return err
	}
	if d.manifest, err = contract.ParseManifest(data); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// readDirectory reads the directory, which is optional.
func (d *desired) readDirectory(dir string) (bool, error) {
	plain := filepath.Join(dir, contract.DirectoryFile)
	path, other := plain+packed.Suffix, plain
	data, changed, err := d.fresh(path)
	if errors.Is(err, fs.ErrNotExist) {
		path, other = other, path
		data, changed, err = d.fresh(path)
	}
	delete(d.seen, other)
	if errors.Is(err, fs.ErrNotExist) {
		delete(d.seen, path)
		changed = d.pods == nil || len(d.pods) > 0
		d.pods, d.hosts = map[netip.Addr]string{}, []byte{}
		return changed, nil
	}
	if err != nil || !changed {
		return false, err
	}
	if path != plain {
		if data, err = packed.Unpack(data, maxDirectory); err != nil {
			return false, fmt.Errorf("read %s: %w", path, err)
		}
	}
	var all contract.Directory
	if err := json.Unmarshal(data, &all); err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	d.pods, d.hosts = podsOf(all), all.Hosts()
	return true, nil
}

// podsOf returns the Pods by the directory's addresses.
func podsOf(dir contract.Directory) map[netip.Addr]string {
	pods := map[netip.Addr]string{}
	for _, n := range dir.Nodes {
		for _, a := range []netip.Addr{n.IPv4, n.IPv6} {
			if legalAddress(a) && contract.HostName(n.Pod) {
				pods[a] = n.Pod
			}
		}
	}
	return pods
}

// parseAddresses reads what the controller says of Pods' addresses. Pods have one or two.
func parseAddresses(data []byte) (map[string][]netip.Addr, error) {
	var a contract.Addresses
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, err
	}
	out := make(map[string][]netip.Addr, len(a.Pods))
	for pod, list := range a.Pods {
		list = slices.DeleteFunc(list, func(a netip.Addr) bool { return !legalAddress(a) })
		if contract.HostName(pod) && len(list) > 0 {
			out[pod] = list[:min(len(list), maxAddresses)]
		}
	}
	return out, nil
}

const maxAddresses = 4

// legalAddress reports whether an address can be another Pod's or node's.
func legalAddress(a netip.Addr) bool {
	return a.IsValid() && a.Zone() == "" && !a.IsLoopback() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func (d *desired) readAddresses(path string) (bool, error) {
	data, changed, err := d.fresh(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !changed {
		return false, err
	}
	all, err := parseAddresses(data)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	d.addresses = all
	return true, nil
}
