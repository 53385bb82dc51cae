package topology

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
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

// Brief reports whether the link is written as two "node:interface" strings.
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

func (l *Links) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode {
		d.WrongType(n, path, strictyaml.WantList)
		return
	}
	l.Items = make([]Link, 0, len(n.Content))
	for _, item := range n.Content {
		item = d.Deref(item)
		if item == nil || strictyaml.IsNull(item) {
			if item != nil {
				d.Errorf(CodeWrongType, item, "remove the empty entry", "a link is empty")
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
func (l *Link) decodeLink(d *strictyaml.Decoder, n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		d.Errorf(CodeWrongType, n, `write {endpoints: ["r1:eth1", "r2:eth1"]}`, "a link must be a mapping, not %s", strictyaml.Describe(n))
		return false
	}
	entries := d.Entries(n)
	typ := ""
	for _, e := range entries {
		if e.Key == "type" && e.Value != nil && e.Value.Kind == yaml.ScalarNode && !strictyaml.IsNull(e.Value) {
			typ = strings.ToLower(strings.TrimSpace(e.Value.Value))
		}
	}
	if typ == "" {
		typ = "brief"
	}
	own, known := LinkTypes[typ]
	if !known {
		d.Errorf(CodeBadValue, n, "use one of: "+strings.Join(sortedKeys(LinkTypes), ", "),
			"unknown link type %q", typ)
		return false
	}
	before := d.Diags.HasErrors()
	if typ == "brief" {
		checkBrief(d, entries)
	}
	d.DecodeStruct(n, l, "topology.links[]", append(append([]string{}, commonLinkKeys...), own...))
	if l.Type.Value != "" {
		l.Type.Value = typ
	}
	l.Pos = d.Pos(n)
	return before || !d.Diags.HasErrors() || l.usable()
}

// checkBrief rejects endpoints of a brief link that are not text.
func checkBrief(d *strictyaml.Decoder, entries []strictyaml.Entry) {
	for _, e := range entries {
		if e.Key != "endpoints" || e.Value.Kind != yaml.SequenceNode {
			continue
		}
		for _, item := range e.Value.Content {
			if item = d.Deref(item); item != nil && item.Kind != yaml.ScalarNode {
				d.Errorf(CodeWrongType, item, `write "node:interface", or give the link a type ("type: veth")`,
					"an endpoint of a brief link must be text")
			}
		}
	}
}

// usable reports whether enough was read for later stages to look at the link.
func (l *Link) usable() bool { return len(l.Endpoints) > 0 || l.Endpoint != nil }

func (e *Endpoint) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	e.Pos = d.Pos(n)
	if n.Kind != yaml.ScalarNode {
		d.DecodeStruct(n, e, path, nil)
		if n.Kind == yaml.MappingNode {
			if e.Node.Value == "" {
				d.Errorf(CodeMissingField, n, `add "node: NAME"`, "the endpoint has no node")
			}
			if e.Interface.Value == "" {
				d.Errorf(CodeMissingField, n, `add "interface: NAME"`, "the endpoint has no interface")
			}
		}
		return
	}
	node, iface, err := ParseEndpoint(n.Value)
	if err != nil {
		d.Errorf(CodeBadEndpoint, n, `write "node:interface", for example "r1:eth1"`, "endpoint %q: %v", n.Value, err)
		return
	}
	e.Node = Str{Value: node, Pos: e.Pos}
	e.Interface = Str{Value: iface, Pos: e.Pos}
}
