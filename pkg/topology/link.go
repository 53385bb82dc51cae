package topology

import (
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"go.yaml.in/yaml/v3"
)

// Links are the links of a topology in the order of the file.
type Links struct {
	Items []Link
}

// Link is one entry of links, brief or extended.
type Link struct {
	Pos diag.Pos
	// Type is the text of the file in lower case; "" means the brief form.
	Type Str `yaml:"type"`
	// Endpoints of the brief form and of veth and veth-stitch.
	Endpoints []Endpoint `yaml:"endpoints"`
	// Endpoint of the types that have one end in the lab.
	Endpoint        *Endpoint `yaml:"endpoint"`
	MTU             Int       `yaml:"mtu"`
	Labels          Map       `yaml:"labels"`
	Vars            AnyMap    `yaml:"vars"`
	IPv4            List      `yaml:"ipv4"`
	IPv6            List      `yaml:"ipv6"`
	HostInterface   Str       `yaml:"host-interface"`
	Mode            Str       `yaml:"mode"`
	Remote          Str       `yaml:"remote"`
	VNI             Int       `yaml:"vni"`
	DstPort         Int       `yaml:"dst-port"`
	SrcPort         Int       `yaml:"src-port"`
	OldUDPPort      Int       `yaml:"udp-port"`
	ParentInterface Str       `yaml:"parent-interface"`
}

// Brief tells whether the link is written as two "node:interface" strings.
func (l *Link) Brief() bool { return l.Type.Value == "" || l.Type.Value == "brief" }

// Endpoint is one end of a link. A brief one has only Node and Interface.
type Endpoint struct {
	Pos       diag.Pos
	Node      Str    `yaml:"node"`
	Interface Str    `yaml:"interface"`
	MAC       Str    `yaml:"mac"`
	IPv4      Str    `yaml:"ipv4"`
	IPv6      Str    `yaml:"ipv6"`
	Vars      AnyMap `yaml:"vars"`
}

// LinkTypes are the words that type accepts, with the keys of each beyond those
// that every link has.
var LinkTypes = map[string][]string{
	"brief":        {"endpoints"},
	"veth":         {"endpoints"},
	"veth-stitch":  {"endpoints"},
	"host":         {"endpoint", "host-interface"},
	"mgmt-net":     {"endpoint", "host-interface"},
	"macvlan":      {"endpoint", "host-interface", "mode"},
	"vxlan":        {"endpoint", "remote", "vni", "dst-port", "src-port", "udp-port", "parent-interface"},
	"vxlan-stitch": {"endpoint", "remote", "vni", "dst-port", "src-port", "udp-port", "parent-interface"},
	"dummy":        {"endpoint"},
}

// commonLinkKeys are the keys of every link type.
var commonLinkKeys = []string{"type", "mtu", "labels", "vars", "ipv4", "ipv6"}

func (l *Links) decodeYAML(d *decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(n, path, wantList)
		return
	}
	l.Items = make([]Link, 0, len(n.Content))
	for _, item := range n.Content {
		item = d.deref(item)
		if item == nil || isNull(item) {
			if item != nil {
				d.errorf(CodeWrongType, item, "remove the empty entry", "a link is empty")
			}
			continue
		}
		var link Link
		if link.decodeLink(d, item) {
			l.Items = append(l.Items, link)
		}
	}
}

// decodeLink reads one entry by the rules of its type.
func (l *Link) decodeLink(d *decoder, n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		d.errorf(CodeWrongType, n, `write {endpoints: ["r1:eth1", "r2:eth1"]}`, "a link must be a mapping, not %s", describe(n))
		return false
	}
	entries := d.entries(n)
	typ := ""
	for _, e := range entries {
		if e.key == "type" && e.value != nil && e.value.Kind == yaml.ScalarNode && !isNull(e.value) {
			typ = strings.ToLower(strings.TrimSpace(e.value.Value))
		}
	}
	if typ == "" {
		typ = "brief"
	}
	own, known := LinkTypes[typ]
	if !known {
		d.errorf(CodeBadValue, n, "use one of: "+strings.Join(sortedKeys(LinkTypes), ", "),
			"link type %q is not known", typ)
		return false
	}
	before := d.diags.HasErrors()
	d.decodeStruct(n, l, "topology.links[]", append(append([]string{}, commonLinkKeys...), own...))
	if l.Type.Value != "" {
		l.Type.Value = typ
	}
	l.Pos = d.pos(n)
	return before || !d.diags.HasErrors() || l.usable()
}

// usable tells whether enough was read for later stages to look at the link.
func (l *Link) usable() bool { return len(l.Endpoints) > 0 || l.Endpoint != nil }

func (e *Endpoint) decodeYAML(d *decoder, n *yaml.Node, path string) {
	e.Pos = d.pos(n)
	if n.Kind != yaml.ScalarNode {
		if strings.HasSuffix(path, "brief[]") {
			d.errorf(CodeWrongType, n, `write "node:interface", or give the link a type ("type: veth")`,
				"an endpoint of a brief link must be text")
			return
		}
		d.decodeStruct(n, e, path, nil)
		if n.Kind == yaml.MappingNode {
			if e.Node.Value == "" {
				d.errorf(CodeMissingField, n, `add "node: NAME"`, "the endpoint has no node")
			}
			if e.Interface.Value == "" {
				d.errorf(CodeMissingField, n, `add "interface: NAME"`, "the endpoint has no interface")
			}
		}
		return
	}
	node, iface, err := ParseEndpoint(n.Value)
	if err != nil {
		d.errorf(CodeBadEndpoint, n, `write "node:interface", for example "r1:eth1"`, "endpoint %q: %v", n.Value, err)
		return
	}
	e.Node = Str{Value: node, Pos: e.Pos}
	e.Interface = Str{Value: iface, Pos: e.Pos}
}
