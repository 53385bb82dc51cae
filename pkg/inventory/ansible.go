package inventory

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// Labels of a node that inventories read, as containerlab does.
const (
	labelAnsibleGroup  = "ansible-group"
	labelAnsibleNoHost = "ansible-no-host-var"
	labelNornirGroup   = "nornir-group" // and all that begin with it
)

// platforms are the network_os and the connection that Ansible needs for a kind.
var platforms = map[string]struct{ os, connection string }{
	"nokia_srlinux": {"nokia.srlinux.srlinux", "ansible.netcommon.httpapi"},
	"nokia_sros":    {"nokia.sros.md", networkCLI},
	"nokia_srsim":   {"nokia.sros.md", networkCLI},
}

const networkCLI = "ansible.netcommon.network_cli"

// Ansible returns an inventory in YAML: a group for each kind, and those of the label
// ansible-group.
func (l *Lab) Ansible() ([]byte, error) {
	children := mapping{}
	groups := mapping{} // of the label
	for _, g := range l.byKind() {
		user, password := g.shared(func(n *Node) string { return n.Username }), g.shared(l.password)
		vars := mapping{}
		if p, ok := platforms[g.name]; ok {
			vars["ansible_network_os"], vars["ansible_connection"] = p.os, p.connection
		}
		vars.set("ansible_user", user)
		vars.set("ansible_password", password)
		hosts := mapping{}
		for _, n := range g.nodes {
			host := mapping{}
			if n.Labels[labelAnsibleNoHost] != "true" {
				host.set("ansible_host", n.Host)
			}
			if n.Proxy != "" {
				host["ansible_ssh_common_args"] = sshArguments(n.Proxy)
				if vars["ansible_connection"] == networkCLI { // it has ssh clients of its own
					host["ansible_paramiko_proxy_command"], host["ansible_libssh_proxy_command"] = n.Proxy, n.Proxy
				}
			}
			if n.Username != user {
				host.set("ansible_user", n.Username)
			}
			if l.password(n) != password {
				host.set("ansible_password", l.password(n))
			}
			hosts[n.Name] = host
			if name := n.Labels[labelAnsibleGroup]; name != "" {
				groups.child(name).child("hosts")[n.Name] = mapping{}
			}
		}
		child := children.child(g.name)
		child["hosts"] = hosts
		if len(vars) > 0 {
			child["vars"] = vars
		}
	}
	for name, g := range groups { // a group may be called as a kind is
		for host, vars := range g.(mapping)["hosts"].(mapping) {
			hosts := children.child(name).child("hosts")
			if _, there := hosts[host]; !there {
				hosts[host] = vars
			}
		}
	}
	all := mapping{"children": children}
	if !l.proxied() {
		// The devices are reached themselves, whatever proxy the environment names.
		all["vars"] = mapping{"ansible_httpapi_use_proxy": false}
	}
	return document(mapping{"all": all})
}

// proxied reports whether nodes are reached by a command.
func (l *Lab) proxied() bool {
	for i := range l.Nodes {
		if l.Nodes[i].Proxy != "" {
			return true
		}
	}
	return false
}

// sshArguments are the options for ssh, which Ansible splits as a shell does.
func sshArguments(proxy string) string {
	text := "-o ProxyCommand=" + shellQuote(proxy)
	for _, o := range []string{"StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"} {
		text += " -o " + o
	}
	return text
}

func shellQuote(word string) string {
	var b bytes.Buffer
	b.WriteByte('\'')
	for _, c := range []byte(word) {
		if c == '\'' {
			b.WriteString(`'\''`)
			continue
		}
		b.WriteByte(c)
	}
	b.WriteByte('\'')
	return b.String()
}

// mapping is a mapping in YAML, which is written in the order of its keys.
type mapping map[string]any

func (m mapping) set(key, value string) {
	if value != "" {
		m[key] = value
	}
}

// child returns the mapping below a key, and makes it.
func (m mapping) child(key string) mapping {
	if below, ok := m[key].(mapping); ok {
		return below
	}
	below := mapping{}
	m[key] = below
	return below
}

func document(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}
