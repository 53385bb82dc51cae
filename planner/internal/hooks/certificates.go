package hooks

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"math/rand/v2"
	"sync"

	clabcert "github.com/srl-labs/containerlab/cert"
)

// certificates give hooks material that stands for what is issued later: a plan
// says where certificates go, and never holds one.
type certificates struct {
	authority *clabcert.CA
	ca        *clabcert.Certificate
	// node is nil until the hooks ask for the node's.
	node *clabcert.Certificate
}

// The three things that a node may have, by the names that plan.File.Certificate uses.
const (
	caCert   = "ca.crt"
	nodeCert = "tls.crt"
	nodeKey  = "tls.key"
)

func standIn(kind, what string) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("c9s stands in " + what)})
}

// standInKey is a small RSA key that is the same in every process, for hooks that
// look into the key. It protects nothing.
func standInKey() ([]byte, error) {
	source := rand.NewChaCha8(sha256.Sum256([]byte("c9s stands in " + nodeKey)))
	prime := func() *big.Int {
		raw := make([]byte, 64)
		for {
			_, _ = source.Read(raw)
			p := new(big.Int).SetBytes(raw)
			p.SetBit(p, 511, 1).SetBit(p, 510, 1).SetBit(p, 0, 1)
			if p.ProbablyPrime(20) && new(big.Int).Mod(new(big.Int).Sub(p, big.NewInt(1)), big.NewInt(65537)).Sign() != 0 {
				return p
			}
		}
	}
	p, q := prime(), prime()
	one := big.NewInt(1)
	phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	key := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: 65537},
		D:         new(big.Int).ModInverse(big.NewInt(65537), phi),
		Primes:    []*big.Int{p, q},
	}
	key.Precompute()
	if err := key.Validate(); err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), nil
}

func newCertificates() *certificates {
	return &certificates{
		authority: clabcert.NewCA(),
		ca:        &clabcert.Certificate{Cert: standIn("CERTIFICATE", caCert), Key: standIn("RSA PRIVATE KEY", "ca.key")},
	}
}

// nodeStandIn is the same for every node. Its key takes a while to make.
var nodeStandIn = sync.OnceValues(func() (*clabcert.Certificate, error) {
	key, err := standInKey()
	if err != nil {
		return nil, err
	}
	return &clabcert.Certificate{Cert: standIn("CERTIFICATE", nodeCert), Key: key}, nil
})

func (c *certificates) LoadCaCert() (*clabcert.Certificate, error) { return c.ca, nil }

func (c *certificates) LoadNodeCert(string) (*clabcert.Certificate, error) {
	var err error
	c.node, err = nodeStandIn()
	return c.node, err
}

func (c *certificates) StoreCaCert(*clabcert.Certificate) error { return nil }

func (c *certificates) StoreNodeCert(string, *clabcert.Certificate) error { return nil }

// is tells which of the three a file is, "" for none.
func (c *certificates) is(content []byte) string {
	text := bytes.TrimSpace(content)
	known := map[string][]byte{caCert: c.ca.Cert}
	if c.node != nil {
		known[nodeCert], known[nodeKey] = c.node.Cert, c.node.Key
	}
	for name, pem := range known {
		if bytes.Equal(text, bytes.TrimSpace(pem)) {
			return name
		}
	}
	return ""
}

// within tells whether a file holds one of the three among other things, in PEM
// or without PEM's frame.
func (c *certificates) within(content []byte) bool {
	for _, what := range []string{caCert, nodeCert, nodeKey} {
		if bytes.Contains(content, []byte(base64.StdEncoding.EncodeToString([]byte("c9s stands in "+what)))) {
			return true
		}
	}
	return false
}
