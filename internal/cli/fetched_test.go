package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// callWith runs a command line with an environment, in a home of the test's own.
func callWith(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	if args[0] != "graph" {
		args = append(args, "--planner", "builtin")
	}
	code = Main(args, IO{In: strings.NewReader(""), Out: &out, Err: &errs, Env: env})
	return out.String(), errs.String(), code
}

// secretFile is a file of the user's that no stranger's topology may read.
func secretFile(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("top-sekret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve serves topologies by name.
func serve(t *testing.T, files map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := files[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func nodeWith(field string) string {
	return "name: t\ntopology:\n  nodes:\n    a:\n      kind: linux\n      image: i\n      " + field + "\n"
}

// TestFetchedTopologyReadsNothing has a URL's topology ask for the user's files and
// environment in every way there is.
func TestFetchedTopologyReadsNothing(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Chdir(home)
	secretFile(t, filepath.Join(home, ".kube", "config"))
	secretFile(t, filepath.Join(home, "config"))
	files := map[string]string{"secret": "top-sekret"}
	url := serve(t, files)
	env := []string{"TOKEN=top-sekret", "HOME=" + home}
	for name, tt := range map[string]struct{ text, code string }{
		"home":            {nodeWith("startup-config: ~/.kube/config"), "file-outside"},
		"relative":        {nodeWith("startup-config: config"), "file-outside"},
		"absolute":        {nodeWith("startup-config: " + home + "/config"), "file-outside"},
		"parent":          {nodeWith("startup-config: ../../../../../.." + home + "/config"), "file-outside"},
		"bind":            {nodeWith("binds: [\"~/.kube/config:/x\"]"), "file-outside"},
		"bind of folder":  {nodeWith("binds: [\"" + home + ":/x\"]"), "file-outside"},
		"bind of here":    {nodeWith("binds: [\".:/x\"]"), "file-outside"},
		"env-file":        {nodeWith("env-files: [" + home + "/config]"), "file-outside"},
		"license":         {nodeWith("license: " + home + "/config"), "file-outside"},
		"generated":       {nodeWith("binds: [\"__clabDir__/topology-data.json:/x\", \"" + home + "/config:/y\"]"), "file-outside"},
		"authority":       {"settings: {certificate-authority: {cert: " + home + "/config, key: " + home + "/config}}\n" + nodeWith(""), "file-outside"},
		"loopback":        {nodeWith("startup-config: " + url + "/secret"), "fetch"},
		"link-local":      {nodeWith("startup-config: http://169.254.169.254/latest/meta-data/"), "fetch"},
		"loopback, named": {nodeWith("startup-config: http://localhost:1/"), "fetch"},
		"variable":        {nodeWith("env: {X: \"${TOKEN}\"}"), "env-withheld"},
		"all variables":   {nodeWith("env: {__IMPORT_ENVS: \"true\"}"), ""},
	} {
		files["t.clab.yml"] = tt.text
		for _, command := range [][]string{{"render", "--with-secrets"}, {"plan", "-o", "json"}, {"render", "--allow-missing"}} {
			if command[len(command)-1] == "--allow-missing" && tt.code == "fetch" {
				continue // nothing is fetched then
			}
			out, errs, code := callWith(t, env, append(command, url+"/t.clab.yml")...)
			if strings.Contains(out+errs, "sekret") {
				t.Errorf("%s: %v gives the secret away:\n%s%s", name, command, out, errs)
			}
			if want := "[" + tt.code + "]"; tt.code != "" && !strings.Contains(errs, want) {
				t.Errorf("%s: %v: want %s, got exit code %d and\n%s", name, command, want, code, errs)
			}
		}
	}
	for flag, text := range map[string]string{
		"--env=TOKEN": nodeWith("env: {X: \"${TOKEN}\"}"),
		"--trust":     nodeWith("env: {X: \"${TOKEN}\"}\n      startup-config: ~/.kube/config\n      binds: [\"" + home + "/config:/y\"]"),
		"--map-file=" + home + "/config=" + home + "/config": nodeWith("binds: [\"" + home + "/config:/y\"]"),
	} {
		files["t.clab.yml"] = text
		if out, errs, code := callWith(t, env, "render", url+"/t.clab.yml", flag); code != ExitOK || !strings.Contains(out, "top-sekret") {
			t.Errorf("%s: exit code %d\n%s", flag, code, errs)
		}
	}
}

// TestHostileRepository has links out of a repository wherever a file is read.
func TestHostileRepository(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	secret := filepath.Join(home, "secret.yaml")
	secretFile(t, secret)
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	up := strings.Repeat("../", 20)
	for name, tt := range map[string]struct {
		links map[string]string
		files map[string]string
		says  string
	}{
		"startup-config": {map[string]string{"cfg": secret}, map[string]string{"t.clab.yml": nodeWith("startup-config: cfg")}, "[file-outside]"},
		"relative link":  {map[string]string{"cfg": up + secret}, map[string]string{"t.clab.yml": nodeWith("startup-config: cfg")}, "[file-outside]"},
		"link to folder": {map[string]string{"d": home}, map[string]string{"t.clab.yml": nodeWith("startup-config: d/secret.yaml")}, "[file-outside]"},
		"bind":           {map[string]string{"d": home}, map[string]string{"t.clab.yml": nodeWith("binds: [\"d:/x\"]")}, "[file-outside]"},
		"parent":         {nil, map[string]string{"t.clab.yml": nodeWith("startup-config: " + up + secret)}, "[file-outside]"},
		"topology":       {map[string]string{"t.clab.yml": secret}, nil, "outside what was fetched"},
		"policy":         {map[string]string{"c9s.yaml": secret}, map[string]string{"t.clab.yml": nodeWith("")}, "outside what was fetched"},
		"variables":      {map[string]string{"t.clab_vars.yaml": secret}, map[string]string{"t.clab.yml": nodeWith("env: {X: \"{{ . }}\"}")}, "outside what was fetched"},
		"template":       {map[string]string{"clab_templates/x.gotmpl": secret}, map[string]string{"t.clab.yml": nodeWith("env: {X: \"{{ template `x.gotmpl` }}\"}")}, "outside what was fetched"},
		"git's own":      {nil, map[string]string{"t.clab.yml": nodeWith("startup-config: .git/config")}, "does not exist"},
	} {
		repo := filepath.Join(t.TempDir(), "lab.git")
		for file, text := range tt.files {
			if err := os.MkdirAll(repo, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(repo, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for link, to := range tt.links {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(repo, link)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, filepath.Join(repo, link)); err != nil {
				t.Fatal(err)
			}
		}
		git(repo, "init", "-q")
		git(repo, "add", "-A")
		git(repo, "commit", "-qm", "x")
		out, errs, code := callWith(t, nil, "render", "file://"+repo)
		if code != ExitFailure || !strings.Contains(errs, tt.says) {
			t.Errorf("%s: exit code %d, want %q:\n%s", name, code, tt.says, errs)
		}
		if strings.Contains(out+errs, "sekret") {
			t.Errorf("%s gives the secret away:\n%s%s", name, out, errs)
		}
	}
	// What is in the repository can be read, through its own links too.
	repo := filepath.Join(t.TempDir(), "lab.git")
	if err := os.MkdirAll(filepath.Join(repo, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"t.clab.yml": nodeWith("binds: [\"sub/link:/y\"]"), "shared.cfg": "shared text"} {
		if err := os.WriteFile(filepath.Join(repo, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../shared.cfg", filepath.Join(repo, "sub", "link")); err != nil {
		t.Fatal(err)
	}
	git(repo, "init", "-q")
	git(repo, "add", "-A")
	git(repo, "commit", "-qm", "x")
	if out, errs, code := callWith(t, nil, "render", "file://"+repo); code != ExitOK || !strings.Contains(out, "shared text") {
		t.Errorf("a repository's own files: exit code %d\n%s", code, errs)
	}
}

// TestLocalTopologyReportsWhatItReads: one note, and only of what is outside the folder.
func TestLocalTopologyReportsWhatItReads(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	secretFile(t, filepath.Join(home, "out", "config"))
	dir := filepath.Join(home, "lab")
	secretFile(t, filepath.Join(dir, "inside"))
	if err := os.Symlink("../out/config", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	topo := filepath.Join(dir, "t.clab.yml")
	write := func(text string) {
		if err := os.WriteFile(topo, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(nodeWith("env: {X: \"${TOKEN}\", Y: \"$$HIDDEN ${UNSET:-d}\"}\n      binds: [\"inside:/a\", \"link:/b\", \"~/out/config:/c\"]"))
	env := []string{"TOKEN=x", "HIDDEN=y", "UNUSED=z"}
	_, errs, code := callWith(t, env, "render", topo)
	want := fmt.Sprintf("%s: note: the output contains files from outside its folder (%s, %s) and environment variables (TOKEN) [reads-outside]\n",
		filepath.ToSlash(topo), filepath.Join(dir, "link"), filepath.Join(home, "out", "config"))
	if code != ExitOK || strings.Count(errs, "note:") != 1 || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, want %q in\n%s", code, want, errs)
	}
	write(nodeWith("binds: [\"inside:/a\"]"))
	if _, errs, code := callWith(t, env, "render", topo); code != ExitOK || strings.Contains(errs, "note:") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// TestPasswordsStayOutOfEveryCommand has a password in the URL of a topology.
func TestPasswordsStayOutOfEveryCommand(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	url := serve(t, map[string]string{"t.clab.yml": nodeWith("startup-config: https://u:sekret@169.254.169.254/x?token=sekret"), "ftp.clab.yml": nodeWith("startup-config: ftp://u:sekret@192.0.2.1/x"),
		"bad.clab.yml": "name: [\n"})
	url = strings.Replace(url, "http://", "http://user:sekret@", 1)
	refs := []string{"ftp://u:sekret@127.0.0.1/t.clab.yml"}
	for _, name := range []string{"t.clab.yml", "ftp.clab.yml", "bad.clab.yml", "gone.clab.yml", "gone.git"} {
		refs = append(refs, url+"/"+name+"?token=sekret")
	}
	for _, ref := range refs {
		for _, command := range []string{"render", "render --allow-missing", "validate", "validate -o json", "plan", "graph -o html"} {
			out, errs, _ := callWith(t, nil, append(strings.Fields(command), ref)...)
			if strings.Contains(out+errs, "sekret") || out+errs == "" {
				t.Errorf("%s of %s prints the password:\n%s%s", command, ref, out, errs)
			}
		}
	}
}
