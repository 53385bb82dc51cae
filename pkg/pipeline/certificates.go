package pipeline

import (
	"fmt"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/pki"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/render"
)

// Issued holds the certificates of an earlier deploy. Those that still fit are kept.
type Issued struct {
	// CA is the lab's authority, nil for none.
	CA *render.Certificate
	// Certificates are those of the nodes, by the name of their Secret.
	Certificates map[string]render.Certificate
}

// Add adds the certificates that the nodes need to the options of render. The
// authority is the topology's, else the earlier one, else a new one.
func (e Issued) Add(l *lab.Lab, plans map[string]*plan.Plan, o *render.Options) error {
	var ca *pki.Authority
	for _, n := range l.Nodes {
		p := plans[n.Name]
		if p == nil || !p.Needs.Certificate {
			continue
		}
		if ca == nil {
			var err error
			if ca, err = e.authority(l); err != nil {
				return err
			}
			o.CA = &render.Certificate{Cert: ca.Cert, Key: ca.Key}
			o.Certificates = map[string]render.Certificate{}
		}
		present := e.Certificates[contract.CertificateSecret(n.ID)]
		pair, err := ca.Issue(request(l, n), pki.Pair{Cert: present.Cert, Key: present.Key})
		if err != nil {
			return fmt.Errorf("issuing the certificate of node %s: %w", n.Name, err)
		}
		o.Certificates[n.Name] = render.Certificate{CA: ca.Cert, Cert: pair.Cert, Key: pair.Key}
	}
	return nil
}

func (e Issued) authority(l *lab.Lab) (*pki.Authority, error) {
	ca := l.CA
	switch {
	case ca != nil && ca.Cert != nil && ca.Key != nil:
		return pki.LoadAuthority(pki.Pair{Cert: l.Files[ca.Cert.Digest], Key: l.Files[ca.Key.Digest]})
	case e.CA != nil:
		return pki.LoadAuthority(pki.Pair{Cert: e.CA.Cert, Key: e.CA.Key})
	case ca != nil:
		return pki.NewAuthority(l.Name, ca.KeySize, time.Duration(ca.ValiditySeconds)*time.Second)
	default:
		return pki.NewAuthority(l.Name, 0, 0)
	}
}

// request describes the certificate that containerlab issues for a node.
func request(l *lab.Lab, n *lab.Node) pki.Request {
	cn := n.Name + "." + l.Name + ".io"
	names := append([]string{n.Name, n.LongName, cn}, n.Certificate.SANs...)
	if n.MgmtIPv4.IsValid() {
		names = append(names, n.MgmtIPv4.String())
	}
	if n.MgmtIPv6.IsValid() {
		names = append(names, n.MgmtIPv6.String())
	}
	return pki.Request{
		CommonName: cn, Names: names, KeySize: n.Certificate.KeySize,
		Validity: time.Duration(n.Certificate.ValiditySeconds) * time.Second,
	}
}
