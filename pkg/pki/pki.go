// Package pki is a lab's certificate authority, as containerlab has one: it issues
// each node that wants it a certificate. Keys are RSA in PKCS #1, certificates
// X.509, all in PEM.
package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"time"
)

// containerlab's defaults.
const (
	defaultKeySize  = 2048 // bits
	defaultValidity = 365 * 24 * time.Hour
	// renew is how long before its end a certificate is issued again.
	renew = 30 * 24 * time.Hour
	// backdate is for clocks that are behind.
	backdate = time.Hour
)

// Pair is a certificate and its key in PEM.
type Pair struct{ Cert, Key []byte }

// Authority issues certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  any
}

// NewAuthority makes the authority of a lab. 0 stands for the defaults.
func NewAuthority(lab string, keySize int, validity time.Duration) (*Authority, error) {
	key, err := rsa.GenerateKey(rand.Reader, orInt(keySize, defaultKeySize))
	if err != nil {
		return nil, err
	}
	template := template(lab+" lab CA", validity)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return LoadAuthority(encode(der, key))
}

// LoadAuthority reads an authority that was made before, or an external one.
func LoadAuthority(p Pair) (*Authority, error) {
	cert, err := parse(p.Cert)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	block, _ := pem.Decode(p.Key)
	if block == nil {
		return nil, errors.New("certificate authority: the key is not PEM")
	}
	key, err := parseKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	return &Authority{Pair: p, cert: cert, key: key}, nil
}

func parseKey(der []byte) (any, error) {
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	return x509.ParsePKCS8PrivateKey(der)
}

func parse(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the certificate is not PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// Request is what a certificate is for.
type Request struct {
	CommonName string
	// Names are DNS names and IP addresses.
	Names    []string
	KeySize  int
	Validity time.Duration
}

// Issue issues a certificate, or returns the present one where that still says
// the same and has a month to go.
func (a *Authority) Issue(r Request, present Pair) (Pair, error) {
	if a.fits(r, present, time.Now()) {
		return present, nil
	}
	key, err := rsa.GenerateKey(rand.Reader, orInt(r.KeySize, defaultKeySize))
	if err != nil {
		return Pair{}, err
	}
	template := template(r.CommonName, r.Validity)
	template.DNSNames, template.IPAddresses = split(r.Names)
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, err
	}
	return encode(der, key), nil
}

// fits reports whether a certificate is what Issue would make.
func (a *Authority) fits(r Request, present Pair, now time.Time) bool {
	cert, err := parse(present.Cert)
	if err != nil || len(present.Key) == 0 || cert.CheckSignatureFrom(a.cert) != nil {
		return false
	}
	names, ips := split(r.Names)
	return cert.Subject.CommonName == r.CommonName && slices.Equal(cert.DNSNames, names) &&
		slices.EqualFunc(cert.IPAddresses, ips, func(a, b net.IP) bool { return a.Equal(b) }) &&
		now.Add(min(renew, cert.NotAfter.Sub(cert.NotBefore)/3)).Before(cert.NotAfter)
}

func split(names []string) (dns []string, ips []net.IP) {
	for _, n := range names {
		if ip, err := netip.ParseAddr(n); err == nil {
			ips = append(ips, ip.AsSlice())
		} else {
			dns = append(dns, n)
		}
	}
	return dns, ips
}

func template(cn string, validity time.Duration) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	now := time.Now().UTC()
	if validity == 0 {
		validity = defaultValidity
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: cn, Organization: []string{"containerlab"}, Country: []string{"US"}},
		NotBefore:    now.Add(-backdate), NotAfter: now.Add(validity),
	}
}

func encode(der []byte, key *rsa.PrivateKey) Pair {
	var cert, private bytes.Buffer
	_ = pem.Encode(&cert, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	_ = pem.Encode(&private, &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return Pair{cert.Bytes(), private.Bytes()}
}

func orInt(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}
