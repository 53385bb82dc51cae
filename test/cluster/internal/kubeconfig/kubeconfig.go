// Package kubeconfig writes the files with which programs and users reach a
// cluster's API server.
package kubeconfig

import (
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/pki"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// contextName is the cluster's in every kubeconfig.
func contextName(c site.Cluster) string { return "c9s-" + c.Name }

// Write writes a kubeconfig for the holder of a certificate, everything in it.
func Write(c site.Cluster, certificate, path string) error {
	config, err := build(c, certificate)
	if err != nil {
		return err
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return host.WriteFile(path, text, 0o600)
}

func build(c site.Cluster, certificate string) (*api.Config, error) {
	var texts [3][]byte
	for i, file := range []string{pki.Cert(c, pki.CA), pki.Cert(c, certificate), pki.Key(c, certificate)} {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	name := contextName(c)
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: "https://" + c.APIServer().String(), CertificateAuthorityData: texts[0]}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: texts[1], ClientKeyData: texts[2]}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config, nil
}
