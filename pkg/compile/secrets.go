package compile

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// secretName recognizes a private key or a licence by its file name.
func secretName(p string) bool {
	base := strings.ToLower(filepath.Base(p))
	ext := filepath.Ext(base)
	return ext == ".key" || ext == ".p12" || ext == ".pfx" || ext == ".lic" || strings.HasPrefix(base, "license") ||
		((strings.HasPrefix(base, "id_rsa") || strings.HasPrefix(base, "id_ed25519") || strings.HasPrefix(base, "id_ecdsa")) && ext != ".pub")
}

// holdsPrivateKey finds a PEM block of a private key, whatever its algorithm.
func holdsPrivateKey(data []byte) bool {
	for rest := data; ; {
		i := bytes.Index(rest, []byte("-----BEGIN "))
		if i < 0 {
			return false
		}
		line, _, _ := bytes.Cut(rest[i:], []byte("\n"))
		if bytes.Contains(line, []byte("PRIVATE KEY-----")) {
			return true
		}
		rest = rest[i+1:]
	}
}

// shareSecrets makes every reference to a secret's contents secret: a licence that
// is also bound somewhere is a licence there too.
func (c *compiler) shareSecrets() {
	secret := map[lab.Digest]bool{}
	c.eachFile(func(f *lab.FileRef) {
		if f.Secret && f.Size > 0 {
			secret[f.Digest] = true
		}
	})
	if len(secret) == 0 {
		return
	}
	c.eachFile(func(f *lab.FileRef) { f.Secret = f.Secret || secret[f.Digest] })
}

// eachFile visits every file of the nodes and of the lab.
func (c *compiler) eachFile(visit func(*lab.FileRef)) {
	each := func(f *lab.FileRef) {
		if f != nil {
			visit(f)
		}
	}
	if c.lab.CA != nil {
		each(c.lab.CA.Cert)
		each(c.lab.CA.Key)
	}
	for _, n := range c.order {
		each(n.License)
		if n.StartupConfig != nil {
			each(&n.StartupConfig.File)
		}
		for i := range n.Mounts {
			each(n.Mounts[i].File)
			if dir := n.Mounts[i].Dir; dir != nil {
				for j := range dir.Entries {
					each(dir.Entries[j].File)
				}
			}
		}
		for _, files := range [][]lab.NamedFile{n.Extras.SRLAgents, n.Extras.CEOSCopyToFlash} {
			for i := range files {
				each(&files[i].File)
			}
		}
	}
}
