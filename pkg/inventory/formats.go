package inventory

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Nornir returns hosts for Nornir's SimpleInventory.
func (l *Lab) Nornir() ([]byte, error) {
	hosts := mapping{}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		host := mapping{"platform": n.Kind, "hostname": n.Host}
		host.set("username", n.Username)
		host.set("password", l.password(n))
		groups := []string{}
		for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
			if strings.HasPrefix(key, labelNornirGroup) && n.Labels[key] != "" {
				groups = append(groups, n.Labels[key])
			}
		}
		host["groups"] = groups
		hosts[n.Name] = host
	}
	return document(hosts)
}

// columns are those of CSV.
var columns = []string{"name", "kind", "image", "host", "mgmt_ipv4", "mgmt_ipv6", "mac", "username", "password", "labels"}

// CSV returns a line for each node. The column of passwords is there with secrets only.
func (l *Lab) CSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	secret := slices.Index(columns, "password")
	row := func(cells []string) {
		if !l.Secrets {
			cells = slices.Delete(slices.Clone(cells), secret, secret+1)
		}
		_ = w.Write(cells) // Error has it
	}
	row(columns)
	for i := range l.Nodes {
		n := &l.Nodes[i]
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
			labels = append(labels, key+"="+n.Labels[key])
		}
		row([]string{n.Name, n.Kind, n.Image, n.Host, address(n.IPv4), address(n.IPv6), n.MAC, n.Username, n.Password, strings.Join(labels, ";")})
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// Prometheus returns targets for file_sd_configs, one a node. port 0 leaves it out.
func (l *Lab) Prometheus(port uint16) ([]byte, error) {
	type target struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	out := []target{}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		host := n.Host
		if port != 0 {
			host = net.JoinHostPort(host, strconv.Itoa(int(port)))
		}
		labels := map[string]string{"lab": l.Name, "namespace": l.Namespace, "node": n.Name, "kind": n.Kind}
		for key, value := range n.Labels {
			if name := "label_" + prometheusName(key); labels[name] == "" {
				labels[name] = value
			}
		}
		out = append(out, target{[]string{host}, labels})
	}
	return indented(out)
}

// prometheusName makes the name of a label of Prometheus: letters, digits and "_".
func prometheusName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, text)
}

func indented(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}
