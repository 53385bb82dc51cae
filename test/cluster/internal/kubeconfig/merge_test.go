package kubeconfig

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

const work = `apiVersion: v1
kind: Config
clusters:
- cluster: {certificate-authority: certs/ca.crt, server: https://work:6443}
  name: work
contexts:
- context: {cluster: work, namespace: mine, user: me}
  name: work
- context: {cluster: work, user: me}
  name: other
current-context: work
users:
- name: me
  user: {token: secret}
`

// Whatever the user had is there again after a cluster came and went.
func TestMergeAndUnmerge(t *testing.T) {
	for _, test := range []struct {
		title  string
		before string                                 // the user's kubeconfig; "" for none
		during func(*api.Config)                      // what the user does in between
		after  func(t *testing.T, config *api.Config) // nil: as before
	}{
		{title: "another context", before: work},
		{title: "no current context", before: strings.Replace(work, "current-context: work", `current-context: ""`, 1)},
		{title: "a current context that is missing", before: strings.Replace(work, "current-context: work", "current-context: gone", 1),
			after: func(t *testing.T, config *api.Config) { wantCurrent(t, config, "") }},
		{title: "the user chose another", before: work,
			during: func(config *api.Config) { config.CurrentContext = "other" },
			after:  func(t *testing.T, config *api.Config) { wantCurrent(t, config, "other") }},
		{title: "the user removed the former one", before: work,
			during: func(config *api.Config) { delete(config.Contexts, "work") },
			after:  func(t *testing.T, config *api.Config) { wantCurrent(t, config, "") }},
		{title: "the user added one", before: "",
			during: func(config *api.Config) { config.Contexts["new"] = &api.Context{Cluster: "new"} },
			after: func(t *testing.T, config *api.Config) {
				wantCurrent(t, config, "")
				if len(config.Contexts) != 1 || config.Contexts["new"] == nil {
					t.Errorf("contexts: %v", config.Contexts)
				}
			}},
		{title: "the user set a namespace", before: work,
			during: func(config *api.Config) { config.Contexts["c9s-t1"].Namespace = "lab" }},
		{title: "the user removed the cluster", before: work,
			during: func(config *api.Config) {
				delete(config.Clusters, "c9s-t1")
				delete(config.AuthInfos, "c9s-t1")
				delete(config.Contexts, "c9s-t1")
				config.CurrentContext = "work"
			}},
		{title: "a kubeconfig without contexts", before: "apiVersion: v1\nkind: Config\n"},
	} {
		t.Run(test.title, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config")
			if test.before != "" {
				write(t, path, test.before)
			}
			before := read(t, path)
			c := mustMerge(t, site.Cluster{Name: "t1"}, "ours", path)
			during := read(t, path)
			wantCurrent(t, during, "c9s-t1")
			if len(during.Contexts) != len(before.Contexts)+1 {
				t.Errorf("contexts: %v", during.Contexts)
			}
			if test.during != nil {
				test.during(during)
				if err := clientcmd.WriteToFile(*during, path); err != nil {
					t.Fatal(err)
				}
			}
			if err := unmerge(c, []byte("ours")); err != nil {
				t.Fatal(err)
			}
			after := read(t, path)
			if test.after != nil {
				test.after(t, after)
				return
			}
			want, got := text(t, before), text(t, after)
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A second start adds nothing, and leaves the user's choice.
func TestMergeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, work)
	c := mustMerge(t, site.Cluster{Name: "t1"}, "ours", path)
	config := read(t, path)
	config.CurrentContext, config.Contexts["c9s-t1"].Namespace = "other", "lab"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	again := mustMerge(t, c, "ours", path)
	if got := read(t, path); text(t, got) != text(t, config) {
		t.Errorf("changed:\n%s", text(t, got))
	}
	if again.Merged.Former != "work" {
		t.Errorf("former context %q", again.Merged.Former)
	}
}

func TestTwoClusters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, work)
	before := text(t, read(t, path))
	first := mustMerge(t, site.Cluster{Name: "t1"}, "one", path)
	second := mustMerge(t, site.Cluster{Name: "t2"}, "two", path)
	if err := unmerge(second, []byte("two")); err != nil {
		t.Fatal(err)
	}
	wantCurrent(t, read(t, path), "c9s-t1")
	if err := unmerge(first, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if got := text(t, read(t, path)); got != before {
		t.Errorf("got\n%s", got)
	}
}

// What has the name of the cluster and is another's stays.
func TestForeignEntriesStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, strings.ReplaceAll(work, "work", "c9s-t1"))
	_, err := merge(site.Cluster{Name: "t1"}, entries("t1", "ours"), path, func(site.Cluster) error {
		t.Error("saved as merged")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "rename") {
		t.Errorf("merged over it: %v", err)
	}
	before := text(t, read(t, path))
	if err := unmerge(site.Cluster{Name: "t1", Merged: site.Merged{Into: path}}, []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if got := text(t, read(t, path)); got != before {
		t.Errorf("got\n%s", got)
	}
}

// The file's mode stays; a new one is the user's alone, and goes with its folders.
func TestFilesOfMerge(t *testing.T) {
	dir := t.TempDir()
	for _, mode := range []fs.FileMode{0o600, 0o640} {
		path := filepath.Join(dir, mode.String())
		write(t, path, work)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		c := mustMerge(t, site.Cluster{Name: "t1"}, "ours", path)
		wantMode(t, path, mode)
		if err := unmerge(c, nil); err != nil {
			t.Fatal(err)
		}
		wantMode(t, path, mode)
	}
	path := filepath.Join(dir, ".kube", "config")
	c := mustMerge(t, site.Cluster{Name: "t1"}, "ours", path)
	wantMode(t, path, 0o600)
	if err := unmerge(c, []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", filepath.Dir(path), err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("-rw-r-----", link); err != nil {
		t.Fatal(err)
	}
	c = mustMerge(t, site.Cluster{Name: "t1"}, "ours", link)
	if err := unmerge(c, []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(link); err != nil || target != "-rw-r-----" {
		t.Errorf("the link leads to %q: %v", target, err)
	}
}

// The kubeconfig is the one that kubectl would write to.
func TestKubeconfigVariable(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	write(t, second, work)
	t.Setenv("KUBECONFIG", first+string(filepath.ListSeparator)+second)
	t.Setenv("HOME", dir)
	path := clientcmd.NewDefaultPathOptions().GetDefaultFilename()
	if path != second {
		t.Fatalf("%s, want the one that is there", path)
	}
	c := mustMerge(t, site.Cluster{Name: "t1"}, "ours", path)
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		t.Fatal(err)
	}
	wantCurrent(t, config, "c9s-t1")

	// With another $KUBECONFIG the cluster moves there.
	c = mustMerge(t, c, "ours", first)
	wantCurrent(t, read(t, second), "work")
	if isIn(read(t, second), "c9s-t1") {
		t.Error("the cluster is in both")
	}
	if err := unmerge(c, []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", first, err)
	}
}

func TestMergeIntoWhatIsNoKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, "just: [a, text")
	_, err := merge(site.Cluster{Name: "t1"}, entries("t1", "ours"), path, func(site.Cluster) error { return nil })
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "just: [a, text" {
		t.Errorf("it is now\n%s", got)
	}
}

func entries(cluster, authority string) *api.Config {
	config, name := api.NewConfig(), "c9s-"+cluster
	config.Clusters[name] = &api.Cluster{Server: "https://10.99.0.1:6443", CertificateAuthorityData: []byte(authority)}
	config.AuthInfos[name] = &api.AuthInfo{ClientKeyData: []byte("key")}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	return config
}

func mustMerge(t *testing.T, c site.Cluster, authority, path string) site.Cluster {
	t.Helper()
	var saved string
	c, err := merge(c, entries(c.Name, authority), path, func(c site.Cluster) error {
		saved = c.Merged.Into
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if saved != path {
		t.Errorf("saved as merged into %q, want %q", saved, path)
	}
	return c
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) *api.Config {
	t.Helper()
	config, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func text(t *testing.T, config *api.Config) string {
	t.Helper()
	written, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

func wantCurrent(t *testing.T, config *api.Config, want string) {
	t.Helper()
	if config.CurrentContext != want {
		t.Errorf("current context %q, want %q", config.CurrentContext, want)
	}
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != want {
		t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
	}
}
