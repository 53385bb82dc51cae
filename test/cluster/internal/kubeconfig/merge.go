package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/c9s-lab/c9s/test/cluster/internal/pki"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// Merge adds the cluster to the user's kubeconfig, the file that kubectl would
// write to, and makes it the current one when it was not in there yet. What
// Unmerge has to know is in the cluster that is saved, before the file is changed.
func Merge(c site.Cluster, save func(site.Cluster) error) (site.Cluster, error) {
	mine, err := build(c, pki.Admin)
	if err != nil {
		return c, err
	}
	path, err := filepath.Abs(clientcmd.NewDefaultPathOptions().GetDefaultFilename())
	if err != nil {
		return c, err
	}
	return merge(c, mine, path, save)
}

func merge(c site.Cluster, mine *api.Config, path string, save func(site.Cluster) error) (site.Cluster, error) {
	name := contextName(c)
	if c.Merged.Into != "" && c.Merged.Into != path { // $KUBECONFIG is another than last time
		if err := unmerge(c, mine.Clusters[name].CertificateAuthorityData); err != nil {
			return c, err
		}
		c.Merged = site.Merged{}
	}
	config, err := load(path)
	if err != nil {
		return c, err
	}
	present := isIn(config, name)
	if present && !isOf(config, name, mine.Clusters[name].CertificateAuthorityData) {
		return c, fmt.Errorf("your kubeconfig %s has a %s of its own: rename it (kubectl config rename-context), or give the cluster another --name", path, name)
	}
	if c.Merged.Into == "" {
		c.Merged = site.Merged{Into: path, Made: missing(path)}
	}
	if !present {
		c.Merged.Former = config.CurrentContext
	}
	if err := save(c); err != nil {
		return c, err
	}
	config.Clusters[name], config.AuthInfos[name] = mine.Clusters[name], mine.AuthInfos[name]
	if config.Contexts[name] == nil { // the user's may have a namespace by now
		config.Contexts[name] = mine.Contexts[name]
	}
	if !present {
		config.CurrentContext = name
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return c, err
	}
	return c, clientcmd.WriteToFile(*config, path) // an existing file keeps its mode and owner
}

// Unmerge takes the cluster out of the kubeconfig that it was merged into. The
// context that was the current one before is so again, unless the user chose
// another; files and folders that Merge made go when nothing else is in them.
func Unmerge(c site.Cluster) error {
	authority, err := os.ReadFile(pki.Cert(c, pki.CA))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return unmerge(c, authority)
}

// unmerge goes by the name alone when a torn start left no authority.
func unmerge(c site.Cluster, authority []byte) error {
	path, name := c.Merged.Into, contextName(c)
	if path == "" {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	config, err := load(path)
	if err != nil {
		return err
	}
	if !isIn(config, name) || authority != nil && !isOf(config, name, authority) {
		return nil
	}
	delete(config.Clusters, name)
	delete(config.AuthInfos, name)
	delete(config.Contexts, name)
	if config.CurrentContext == name {
		config.CurrentContext = ""
		if config.Contexts[c.Merged.Former] != nil {
			config.CurrentContext = c.Merged.Former
		}
	}
	if len(c.Merged.Made) == 0 || len(config.Contexts)+len(config.Clusters)+len(config.AuthInfos) > 0 {
		return clientcmd.WriteToFile(*config, path)
	}
	for _, made := range c.Merged.Made {
		if err := os.Remove(made); err != nil && made == path {
			return err
		}
	}
	return nil
}

func isIn(config *api.Config, name string) bool {
	return config.Clusters[name] != nil || config.AuthInfos[name] != nil || config.Contexts[name] != nil
}

// isOf reports whether the entries of that name are those of the cluster with the
// given authority.
func isOf(config *api.Config, name string, authority []byte) bool {
	cluster := config.Clusters[name]
	return cluster != nil && bytes.Equal(cluster.CertificateAuthorityData, authority)
}

// missing lists what does not exist of a path, the file first.
func missing(path string) []string {
	var paths []string
	for ; ; path = filepath.Dir(path) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return paths
		}
		paths = append(paths, path)
	}
}

func load(path string) (*api.Config, error) {
	config, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return api.NewConfig(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading your kubeconfig %s: %w", path, err)
	}
	return config, nil
}
