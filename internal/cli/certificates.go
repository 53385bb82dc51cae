//go:build !nocluster

package cli

import (
	"fmt"
	"time"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/pki"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/render"
)

// certificates issues what the nodes of a lab need: from the authority that the
// topology names, or the one that the cluster has, or a new one. Certificates
// that still fit stay.
func certificates(existing cluster.Existing) certifier {
	return func(l *lab.Lab, plans map[string]*plan.Plan, o *render.Options) error {
		var ca *pki.Authority
		for _, n := range l.Nodes {
			p := plans[n.Name]
			if p == nil || !p.Needs.Certificate {
				continue
			}
			if ca == nil {
				var err error
				if ca, err = authority(l, existing); err != nil {
					return err
				}
				o.CA = &render.Certificate{Cert: ca.Cert, Key: ca.Key}
				o.Certificates = map[string]render.Certificate{}
			}
			present := existing.Certificates[contract.CertificateSecret(n.ID)]
			pair, err := ca.Issue(request(l, n), pki.Pair{Cert: present.Cert, Key: present.Key})
			if err != nil {
				return fmt.Errorf("issuing the certificate of node %s: %w", n.Name, err)
			}
			o.Certificates[n.Name] = render.Certificate{CA: ca.Cert, Cert: pair.Cert, Key: pair.Key}
		}
		return nil
	}
}

func authority(l *lab.Lab, existing cluster.Existing) (*pki.Authority, error) {
	ca := l.CA
	switch {
	case ca != nil && ca.Cert != nil && ca.Key != nil:
		return pki.LoadAuthority(pki.Pair{Cert: l.Files[ca.Cert.Digest], Key: l.Files[ca.Key.Digest]})
	case existing.CA != nil:
		return pki.LoadAuthority(pki.Pair{Cert: existing.CA.Cert, Key: existing.CA.Key})
	case ca != nil:
		return pki.NewAuthority(l.Name, ca.KeySize, time.Duration(ca.ValiditySeconds)*time.Second)
	default:
		return pki.NewAuthority(l.Name, 0, 0)
	}
}

// request is containerlab's certificate of a node.
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
