package lab

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const certified = `name: tls
topology:
  nodes:
    R1:
      kind: arista_ceos
      image: ghcr.io/srl-labs/network-multitool:latest
      entrypoint: "sh -c 'exec sleep infinity'"
      certificate: {sans: [edge.example.net]}
    A:
      kind: linux
      image: ghcr.io/srl-labs/network-multitool:latest
      certificate: {issue: true, key-size: 3072, validity-duration: 1000h}
      binds:
      - __clabDir__/.tls/ca/ca.pem:/tls/ca.pem
      - __clabDir__/.tls/A/A.pem:/tls/own.pem
      - __clabDir__/.tls/A/A.key:/tls/own.key
    B: {kind: linux, image: "ghcr.io/srl-labs/network-multitool:latest"}
`

// Nodes get certificates of the lab's own authority, which stays the same.
func TestCertificates(t *testing.T) {
	l := written(t, "tls", map[string]string{"lab.clab.yml": certified})
	rendered, err := l.output(t, "render", l.topo, "-n", l.ns, "--image", c9sImage, "--planner", planner)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(rendered, []byte("PRIVATE KEY")) || bytes.Contains(rendered, []byte("kind: Secret\n")) || bytes.Contains(rendered, []byte("LS0tLS1CRUdJTi")) {
		t.Error("rendered output has keys")
	}
	l.deploy(t)
	secret := func(name, key string) []byte {
		t.Helper()
		s, err := l.Typed.CoreV1().Secrets(l.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s.Data[key]
	}
	fileOf := func(node, path string) []byte {
		t.Helper()
		out, err := l.in(t.Context(), node, "cat", path)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return []byte(out)
	}
	file := func(path string) []byte { t.Helper(); return fileOf("R1", path) }
	authority := secret("c9s-ca", "tls.crt")
	// In the device, as its kind wants them.
	cert, key, ca := file("/persist/secure/ssl/certs/node.crt"), file("/persist/secure/ssl/keys/node.key"), file("/persist/secure/ssl/certs/ca.crt")
	if !bytes.Equal(ca, authority) {
		t.Error("the device has another authority than the lab")
	}
	leaf := verify(t, authority, cert, key, "R1")
	for _, name := range []string{"clab-tls-R1", "R1.tls.io", "edge.example.net", l.status(t).node("R1").IPv4} {
		if err := leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	// At the paths that the topology binds containerlab's files to.
	if !bytes.Equal(fileOf("A", "/tls/ca.pem"), authority) {
		t.Error("the authority that A binds is another than the lab's")
	}
	verify(t, authority, fileOf("A", "/tls/own.pem"), fileOf("A", "/tls/own.key"), "A")
	// Of a kind that names no files, in the Secret.
	leaf = verify(t, authority, secret("a-tls", "tls.crt"), secret("a-tls", "tls.key"), "A")
	if bits := leaf.PublicKey.(interface{ Size() int }).Size() * 8; bits != 3072 {
		t.Errorf("A's key has %d bits", bits)
	}
	if valid := leaf.NotAfter.Sub(time.Now()); valid > 1000*time.Hour || valid < 999*time.Hour {
		t.Errorf("A's certificate is valid for %s", valid)
	}
	if _, err := l.Typed.CoreV1().Secrets(l.ns).Get(t.Context(), "b-tls", metav1.GetOptions{}); err == nil {
		t.Error("B has a certificate, which it did not ask for")
	}
	// What runs in the lab and what may be read of it without Secrets has no key.
	maps, err := l.Typed.CoreV1().ConfigMaps(l.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range maps.Items {
		for _, text := range maps.Items[i].Data {
			if strings.Contains(text, "PRIVATE KEY") {
				t.Errorf("ConfigMap %s has a key", maps.Items[i].Name)
			}
		}
	}
	// Again: nothing is issued again, nothing restarts.
	before := restarts(t, l)
	l.deploy(t)
	if !bytes.Equal(secret("c9s-ca", "tls.crt"), authority) || !bytes.Equal(secret("r1-tls", "tls.key"), key) {
		t.Error("the second deploy issued anew")
	}
	if now := restarts(t, l); now["r1"] != before["r1"] || now["a"] != before["a"] {
		t.Errorf("restarted: %v, then %v", before, now)
	}
	l.destroyed(t)
}

// verify checks that a certificate is of the authority, and the key the
// certificate's.
func verify(t *testing.T, authority, cert, key []byte, name string) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("no authority")
	}
	block, _ := pem.Decode(cert)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if leaf.IsCA || slices.Contains(leaf.DNSNames, "") {
		t.Errorf("%s: the certificate is %v for %v", name, leaf.IsCA, leaf.DNSNames)
	}
	return leaf
}
