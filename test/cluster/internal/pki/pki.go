// Package pki makes a cluster's certificate authority and everything it signs.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

const lifetime = 365 * 24 * time.Hour

// File names within the cluster's PKI folder.
const (
	CA             = "ca"
	APIServer      = "apiserver"
	Admin          = "admin"
	Controllers    = "kube-controller-manager"
	Scheduler      = "kube-scheduler"
	Proxy          = "kube-proxy"
	ServiceAccount = "service-account"
	done           = "complete"
)

// Cert and Key are the paths of a certificate and of its key.
func Cert(c site.Cluster, name string) string { return filepath.Join(c.PKI(), name+".crt") }
func Key(c site.Cluster, name string) string  { return filepath.Join(c.PKI(), name+".key") }

// Ensure makes all certificates, unless a complete set is there.
func Ensure(c site.Cluster) error {
	marker := filepath.Join(c.PKI(), done)
	if _, err := os.Stat(marker); err == nil {
		return nil
	}
	authority, err := newAuthority(c)
	if err != nil {
		return fmt.Errorf("making the certificate authority: %w", err)
	}
	for _, cert := range wanted(c) {
		if err := authority.issue(c, cert); err != nil {
			return fmt.Errorf("issuing certificate %s: %w", cert.name, err)
		}
	}
	if err := makeServiceAccountKey(c); err != nil {
		return err
	}
	return host.WriteFile(marker, nil, 0o600)
}

type certificate struct {
	name   string
	user   string
	groups []string
	dns    []string
	ips    []net.IP
}

func wanted(c site.Cluster) []certificate {
	server := certificate{
		name: APIServer, user: "kube-apiserver", groups: []string{"system:masters"},
		dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		ips: []net.IP{net.IPv4(127, 0, 0, 1), c.KubernetesService().AsSlice()},
	}
	for _, address := range c.Control().Addresses() {
		server.ips = append(server.ips, address.Addr().AsSlice())
	}
	all := []certificate{
		server,
		{name: Admin, user: "kubernetes-admin", groups: []string{"system:masters"}},
		// Not system:kube-controller-manager: a controller's own service account
		// would delay the first default ServiceAccount by seconds.
		{name: Controllers, user: "system:kube-controller-manager", groups: []string{"system:masters"}},
		{name: Scheduler, user: "system:kube-scheduler"},
		{name: Proxy, user: "system:kube-proxy"},
	}
	for _, worker := range c.AllWorkers() {
		kubelet := certificate{name: worker.Name(), user: "system:node:" + worker.Name(), groups: []string{"system:nodes"}, dns: []string{worker.Name()}}
		for _, address := range worker.Addresses() {
			kubelet.ips = append(kubelet.ips, address.Addr().AsSlice())
		}
		all = append(all, kubelet)
	}
	return all
}

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(c site.Cluster) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	template, err := newTemplate(pkix.Name{CommonName: "c9s-cluster " + c.Name})
	if err != nil {
		return authority{}, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return authority{}, err
	}
	return authority{cert: cert, key: key}, write(c, CA, der, key)
}

func (a authority) issue(c site.Cluster, want certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template, err := newTemplate(pkix.Name{CommonName: want.user, Organization: want.groups})
	if err != nil {
		return err
	}
	template.DNSNames, template.IPAddresses = want.dns, want.ips
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return write(c, want.name, der, key)
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime)}, nil
}

// makeServiceAccountKey makes the key pair that signs service account tokens.
func makeServiceAccountKey(c site.Cluster) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(c, ServiceAccount, key)
}

func write(c site.Cluster, name string, der []byte, key *ecdsa.PrivateKey) error {
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := host.WriteFile(Cert(c, name), text, 0o644); err != nil {
		return err
	}
	return writeKey(c, name, key)
}

func writeKey(c site.Cluster, name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return host.WriteFile(Key(c, name), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
