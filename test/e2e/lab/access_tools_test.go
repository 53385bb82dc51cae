package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// as runs c9s under the name of another program.
func (l *lab) as(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	cmd := l.command(t.Context(), args...)
	cmd.Path, cmd.Args[0] = link, link
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, errs.String())
	}
	return string(out), err
}

// copiedFiles copies files and folders by c9s cp, which needs no tar in the image.
func (l *lab) copiedFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a/b/deep": "deep\n", "a/run.sh": "#!/bin/sh\necho ran\n"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = l.in(t.Context(), "H1", "sh", "-c", "mv $(command -v tar) /root/no-tar 2>/dev/null; true")
	l.c9s(t, "cp", "-n", l.ns, filepath.Join(dir, "a"), "H1:/srv/copy")
	if out, err := l.in(t.Context(), "H1", "sh", "-c", "/srv/copy/run.sh; cat /srv/copy/b/deep; ln -s b/deep /srv/copy/link"); err != nil || out != "ran\ndeep\n" {
		t.Errorf("in the node: %v: %s", err, out)
	}
	var done struct{ Files, Bytes int }
	out, err := l.output(t, "cp", "-n", l.ns, "-o", "json", "H1:/srv/copy/.", filepath.Join(dir, "back"))
	if err != nil || json.Unmarshal(out, &done) != nil || done.Files != 3 {
		t.Errorf("back: %v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "back", "link"))
	if err != nil || string(text) != "deep\n" {
		t.Errorf("the link leads to %q, %v", text, err)
	}
	// A file that is mounted, which no other file can replace.
	file := filepath.Join(dir, "hostname")
	if err := os.WriteFile(file, []byte("H1-changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l.c9s(t, "cp", "-n", l.ns, file, "H1:/etc/hostname")
	if out, err := l.in(t.Context(), "H1", "cat", "/etc/hostname"); err != nil || out != "H1-changed\n" {
		t.Errorf("/etc/hostname: %v: %s", err, out)
	}
	if out, err := l.try(t.Context(), "cp", "-n", l.ns, "H1:/no/such", dir); err == nil || !strings.Contains(out, "node H1: lstat /no/such: no such file or directory") {
		t.Errorf("a file that is not there: %v: %s", err, out)
	}
}

// rsynced has rsync copy a folder to a node and back. The node gets the program by c9s cp.
func (l *lab) rsynced(t *testing.T, key string) {
	local, err := exec.LookPath("rsync")
	if err != nil {
		t.Skip("needs rsync")
	}
	files := []string{local}
	libraries, err := exec.Command("ldd", local).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(libraries)) {
		if _, rest, found := strings.Cut(line, "=> "); found && !strings.Contains(rest, "libc.so") {
			file, _, _ := strings.Cut(rest, " ")
			files = append(files, file)
		}
	}
	for _, file := range files {
		l.c9s(t, "cp", "-L", "-q", "-n", l.ns, file, "h2:"+filepath.Dir(file)+"/"+filepath.Base(file))
	}
	dir := t.TempDir()
	for i := range 50 {
		name := filepath.Join(dir, "from", fmt.Sprint("d", i%5), fmt.Sprint(i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, bytes.Repeat([]byte{byte(i)}, 10_000), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "ssh")
	words := []string{"exec ssh"}
	for _, o := range l.proxyOptions(key, "h2") {
		words = append(words, "'"+o+"'")
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+strings.Join(words, " ")+" \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, way := range [][2]string{{dir + "/from/", "root@h2:/tmp/synced"}, {"root@h2:/tmp/synced/", dir + "/back"}} {
		if out, err := exec.CommandContext(t.Context(), "rsync", "-a", "-e", script, way[0], way[1]).CombinedOutput(); err != nil {
			t.Fatalf("rsync %v: %v: %s", way, err, out)
		}
	}
	if out, err := exec.Command("diff", "-r", dir+"/from", dir+"/back").CombinedOutput(); err != nil {
		t.Errorf("what came back differs: %s", out)
	}
}

// asDocker runs the calls of lab authors' scripts.
func (l *lab) asDocker(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"exec", "clab-access-h2", "hostname"}, "h2\n"},
		{[]string{"exec", "-e", "A=b c", "-w", "/tmp", "clab-access-h2", "sh", "-c", "echo $A; pwd"}, "b c\n/tmp\n"},
		{[]string{"exec", "-u", "nobody", "clab-access-h2", "id", "-un"}, "nobody\n"},
		{[]string{"exec", "-d", "clab-access-h2", "sh", "-c", "sleep 0.2; echo later > /tmp/later"}, ""},
		{[]string{"ps", "--format", "{{.Names}}", "-f", "name=clab-access-h2"}, "clab-access-h2\n"},
		{[]string{"inspect", "-f", "{{.State.Running}} {{.Config.Hostname}}", "clab-access-H1"}, "true H1\n"},
	} {
		if out, err := l.as(t, "docker", c.args...); err != nil || out != c.want {
			t.Errorf("docker %s: %v: %q", strings.Join(c.args, " "), err, out)
		}
	}
	testcluster.Eventually(t, patience, "the detached command", func() error {
		out, err := l.as(t, "docker", "exec", "clab-access-h2", "cat", "/tmp/later")
		if err == nil && out != "later\n" {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
	if _, err := l.as(t, "docker", "exec", "clab-access-h2", "sh", "-c", "exit 9"); err == nil || !strings.Contains(err.Error(), "exit status 9") {
		t.Errorf("an exit code: %v", err)
	}
	file := filepath.Join(t.TempDir(), "f")
	if _, err := l.as(t, "docker", "cp", "clab-access-h2:/etc/hostname", file); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.EqualFold(strings.TrimSpace(string(text)), "h2") {
		t.Errorf("docker cp: %q, %v", text, err)
	}
}

// asContainerlab makes calls of the VS Code extension.
func (l *lab) asContainerlab(t *testing.T) {
	var details map[string][]struct {
		Names           []string
		ID, State       string
		NetworkSettings struct {
			IPv4addr string
			IPv4pLen int
		}
	}
	out, err := l.as(t, "containerlab", "inspect", "-r", "docker", "--name", "access", "--details", "--format", "json")
	if err != nil || json.Unmarshal([]byte(out), &details) != nil || len(details["access"]) != 3 {
		t.Fatalf("%v: %s", err, out)
	}
	h3 := details["access"][2]
	if h3.Names[0] != "clab-access-h3" || h3.State != "running" || h3.NetworkSettings.IPv4addr != "172.20.20.13" || h3.NetworkSettings.IPv4pLen != 24 {
		t.Errorf("h3 is %+v", h3)
	}
	if out, err := l.as(t, "docker", "exec", h3.ID[:12], "hostname"); err != nil || out != "h3\n" {
		t.Errorf("by its ID: %v: %s", err, out)
	}
	var interfaces []struct {
		Name       string
		Interfaces []struct {
			Name, Mac, State, Peer string
			MTU, Ifindex           int
			Counters               struct{ RxBytes, TxBytes int }
		}
	}
	out, err = l.as(t, "containerlab", "inspect", "interfaces", "--name", "access", "-f", "json", "-n", "clab-access-H1")
	if err != nil || json.Unmarshal([]byte(out), &interfaces) != nil || len(interfaces) != 1 || interfaces[0].Name != "clab-access-H1" {
		t.Fatalf("%v: %s", err, out)
	}
	found := false
	for _, i := range interfaces[0].Interfaces {
		if i.Name == "eth1" {
			found = i.State == "up" && i.Peer == "h2:eth1" && i.MTU == 9500 && i.Ifindex > 0 && i.Mac != "" && i.Counters.TxBytes > 0
		}
	}
	if !found {
		t.Errorf("eth1 is not as it should be: %s", out)
	}
	out, err = l.as(t, "containerlab", "exec", "--name", "access", "--label", "clab-node-name=h2", "--cmd", "hostname", "-f", "json")
	if want := `{"clab-access-h2":[{"cmd":["hostname"],"return-code":0,"stdout":"h2\n","stderr":""}]}`; err != nil || compact(out) != want {
		t.Errorf("exec: %v: %s", err, out)
	}
	if _, err := l.as(t, "containerlab", "tools", "netem", "set", "-n", "clab-access-H1", "-i", "eth1", "--delay", "7ms"); err != nil {
		t.Error(err)
	}
	out, err = l.as(t, "containerlab", "tools", "netem", "show", "-n", "clab-access-H1", "--format", "json")
	if err != nil || !strings.Contains(compact(out), `{"interface":"eth1","delay":"7ms","jitter":"","packet_loss":0,"rate":0,"corruption":0}`) {
		t.Errorf("netem show: %v: %s", err, out)
	}
	if _, err := l.as(t, "containerlab", "tools", "netem", "reset", "-n", "clab-access-H1", "-i", "eth1"); err != nil {
		t.Error(err)
	}
}

// compact is JSON without white space between its parts.
func compact(text string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) != nil {
		return text
	}
	return out.String()
}

// followedEvents reads events while an interface goes down and a container ends.
func (l *lab) followedEvents(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := l.command(ctx, "events", "-n", l.ns, "-o", "json", "--initial-state", "--interface-stats")
	defer cancel()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
	}()
	type event struct {
		Type       string
		Action     string
		ActorName  string `json:"actor_name"`
		Attributes map[string]string
	}
	events := make(chan event, 10_000)
	go func() {
		defer close(events)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Errorf("%v: %s", err, lines.Text())
			}
			events <- e
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	await := func(what string, fits func(event) bool) {
		t.Helper()
		testcluster.Eventually(t, patience, what, func() error {
			for {
				select {
				case e, ok := <-events:
					if !ok {
						t.Fatalf("the events ended before %s", what)
					}
					if fits(e) {
						return nil
					}
				default:
					return fmt.Errorf("there was none")
				}
			}
		})
	}
	eth1 := func(action, state string) func(event) bool {
		return func(e event) bool {
			return e.Type == "interface" && e.Action == action && e.ActorName == "clab-access-h2" && e.Attributes["ifname"] == "eth1" && e.Attributes["state"] == state
		}
	}
	await("the state of h2", func(e event) bool {
		return e.Type == "container" && e.Action == "running" && e.ActorName == "clab-access-h2" && e.Attributes["mgmt_ipv4"] != "" && e.Attributes["lab"] == "access"
	})
	await("the state of eth1", eth1("snapshot", "up"))
	await("the counters of eth1", func(e event) bool {
		return eth1("stats", "up")(e) && e.Attributes["rx_bps"] != "" && e.Attributes["tx_bytes"] != ""
	})
	if out, err := l.in(t.Context(), "h2", "ip", "link", "set", "eth1", "down"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	await("eth1 down", eth1("update", "down"))
	l.c9s(t, "restart", "h2", "-n", l.ns)
	for _, action := range []string{"die", "start", "health_status: healthy"} {
		await("a container: "+action, func(e event) bool {
			return e.Type == "container" && e.Action == action && e.ActorName == "clab-access-h2"
		})
	}
}
