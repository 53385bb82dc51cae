// Package kubeconfig writes the files by which programs and users reach a
// cluster's API server.
package kubeconfig

import (
	"fmt"
	"os"
	"path/filepath"

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

// Merge adds the cluster to the user's kubeconfig, whose path it returns, and
// makes it the current one.
func Merge(c site.Cluster) (string, error) {
	mine, err := build(c, pki.Admin)
	if err != nil {
		return "", err
	}
	path := userFile()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	config, err := load(path)
	if err != nil {
		return "", err
	}
	name := contextName(c)
	config.Clusters[name], config.AuthInfos[name], config.Contexts[name] = mine.Clusters[name], mine.AuthInfos[name], mine.Contexts[name]
	config.CurrentContext = name
	return path, clientcmd.WriteToFile(*config, path)
}

// Unmerge takes the cluster out of the kubeconfig that it was merged into; a file
// that is empty then goes as well.
func Unmerge(c site.Cluster) error {
	path := c.MergedInto
	if _, err := os.Stat(path); path == "" || err != nil {
		return nil
	}
	config, err := load(path)
	if err != nil {
		return err
	}
	name := contextName(c)
	if _, merged := config.Contexts[name]; !merged {
		return nil
	}
	delete(config.Clusters, name)
	delete(config.AuthInfos, name)
	delete(config.Contexts, name)
	if config.CurrentContext == name {
		config.CurrentContext = ""
	}
	if len(config.Contexts)+len(config.Clusters)+len(config.AuthInfos) == 0 {
		return os.Remove(path)
	}
	return clientcmd.WriteToFile(*config, path)
}

func load(path string) (*api.Config, error) {
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return api.NewConfig(), nil
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading your kubeconfig %s: %w", path, err)
	}
	return config, nil
}

func userFile() string {
	return clientcmd.NewDefaultPathOptions().GetDefaultFilename()
}
