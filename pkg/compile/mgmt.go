package compile

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// containerlab's defaults for a lab that names neither family.
var (
	defaultIPv4 = netip.MustParsePrefix("172.20.20.0/24")
	defaultIPv6 = netip.MustParsePrefix("3fff:172:20:20::/64")
)

// grownIPv4 replaces defaultIPv4 in labs that need more addresses.
var grownIPv4 = netip.MustParsePrefix("172.20.0.0/16")

// defaultMgmtMTU is the MTU of eth0 if the topology sets none (Docker's default).
const defaultMgmtMTU = 1500

// compileMgmt settles the management network.
func (c *compiler) compileMgmt() {
	m := c.f.Mgmt
	if m == nil {
		m = &topology.Mgmt{}
	}
	c.checkNetworks(m)
	v4, v6 := m.IPv4Subnet, m.IPv6Subnet
	for _, old := range []struct {
		from topology.Str
		to   *topology.Str
		name string
	}{{m.OldIPv4Subnet, &v4, "ipv4-subnet"}, {m.OldIPv6Subnet, &v6, "ipv6-subnet"}} {
		if old.from.Value == "" {
			continue
		}
		c.diags.Warnf(CodeDeprecated, old.from.Pos, "write "+old.name, "%s is the old name of %s", strings.ReplaceAll(old.name, "-", "_"), old.name)
		if old.to.Value == "" {
			*old.to = old.from
		}
	}
	if v4.Value == "" && v6.Value == "" {
		v4.Value, v6.Value = "auto", "auto"
	}
	c.lab.Mgmt = lab.Mgmt{Network: m.Network.Value, MTU: defaultMgmtMTU, ExternalAccess: true}
	if c.lab.Mgmt.Network == "" {
		c.lab.Mgmt.Network = "clab"
	}
	if m.ExternalAccess.Set {
		c.lab.Mgmt.ExternalAccess = m.ExternalAccess.Value
	}
	if m.MTU.Value != 0 {
		if mtu := c.within(m.MTU, 576, 65535, "mtu", "bytes"); mtu != 0 {
			c.lab.Mgmt.MTU = mtu
		}
	}
	c.lab.Mgmt.IPv4 = c.mgmtFamily(v4, m.IPv4Gateway, m.IPv4Range, c.defaultSubnet(v4, defaultIPv4, 24, 16))
	c.lab.Mgmt.IPv6 = c.mgmtFamily(v6, m.IPv6Gateway, m.IPv6Range, c.defaultSubnet(v6, defaultIPv6, 64, 48))
	if c.lab.Mgmt.IPv6.Subnet.IsValid() && c.lab.Mgmt.MTU < minIPv6MTU {
		c.diags.Errorf(CodeOutOfRange, m.MTU.Pos, "write 1280 or more, or set ipv4-subnet alone",
			"mtu %d of the management network is less than %d, and Linux has no IPv6 there", c.lab.Mgmt.MTU, minIPv6MTU)
	}
}

// hasNetwork reports whether the lab has a management network of that name.
func (c *compiler) hasNetwork(name string) bool {
	return name == c.lab.Mgmt.Network || c.f.Mgmt != nil &&
		slices.ContainsFunc(c.f.Mgmt.Others, func(m topology.Mgmt) bool { return m.Network.Value == name })
}

// checkNetworks rejects a second management network, and values that containerlab
// does not accept.
func (c *compiler) checkNetworks(m *topology.Mgmt) {
	if len(m.Others) > 0 {
		c.diags.Errorf(CodeMgmtNetwork, m.Others[0].Pos, "keep one network under mgmt, and connect nodes to the others by links to a bridge",
			"the lab has %s, and a Pod has one management interface", diag.Count(len(m.Others)+1, "management network"))
	}
	if m.Driver.Value != "macvlan" && (m.MacvlanMode.IsSet() || m.MacvlanParent.IsSet() || m.MacvlanAux.Set) {
		c.diags.Errorf(topology.CodeBadValue, m.Pos, "write driver: macvlan, or remove the options", "the management network has options of macvlan and another driver")
	}
	for _, v := range []struct {
		s       topology.Str
		name    string
		allowed []string
	}{
		{m.Driver, "driver", []string{"bridge", "macvlan"}},
		{m.MacvlanMode, "macvlan-mode", []string{"bridge", "private", "vepa", "passthru"}},
	} {
		if v.s.IsSet() && !slices.Contains(v.allowed, v.s.Value) {
			c.diags.Errorf(topology.CodeBadValue, v.s.Pos, "use one of "+strings.Join(v.allowed, ", "), "%s %q of the management network does not exist", v.name, v.s.Value)
		}
	}
}

// defaultSubnet is the subnet of a family for which the file has none: the
// default, or else the one that the addresses on the nodes have in common. Labs
// for an existing network of the container engine name addresses and no subnet.
// The common prefix has between least and most bits.
func (c *compiler) defaultSubnet(written topology.Str, fallback netip.Prefix, most, least int) netip.Prefix {
	if written.Value != "auto" {
		return fallback
	}
	var common netip.Prefix
	var at diag.Pos
	for _, def := range c.f.Topology.Nodes.Items {
		if def.Node == nil {
			continue
		}
		s := def.Node.MgmtIPv4
		if fallback.Addr().Is6() {
			s = def.Node.MgmtIPv6
		}
		a, err := netip.ParseAddr(s.Value)
		if err != nil || a.Is4() != fallback.Addr().Is4() {
			continue
		}
		if fallback.Contains(a) {
			return fallback
		}
		if !common.IsValid() {
			common, at = netip.PrefixFrom(a, most).Masked(), s.Pos
		}
		for !common.Contains(a) && common.Bits() > least {
			common = netip.PrefixFrom(common.Addr(), common.Bits()-1).Masked()
		}
		if !common.Contains(a) {
			return fallback
		}
	}
	if !common.IsValid() {
		return fallback
	}
	c.diags.Warnf(CodeMgmtSubnet, at, "set it under mgmt", "the file sets no management subnet, and its addresses are outside %s; %s is used", fallback, common)
	return common
}

// firstGateway is the first host of a subnet that no node has for itself.
func (c *compiler) firstGateway(subnet netip.Prefix) netip.Addr {
	own := map[netip.Addr]bool{}
	for _, def := range c.f.Topology.Nodes.Items {
		if def.Node != nil {
			for _, s := range []topology.Str{def.Node.MgmtIPv4, def.Node.MgmtIPv6} {
				if a, err := netip.ParseAddr(s.Value); err == nil {
					own[a] = true
				}
			}
		}
	}
	a := subnet.Addr().Next()
	for own[a] {
		a = a.Next()
	}
	return a
}

func (c *compiler) mgmtFamily(subnet, gateway, within topology.Str, fallback netip.Prefix) lab.MgmtFamily {
	var f lab.MgmtFamily
	family := "IPv4"
	if fallback.Addr().Is6() {
		family = "IPv6"
	}
	switch subnet.Value {
	case "":
		if gateway.Value != "" || within.Value != "" {
			s := gateway
			if s.Value == "" {
				s = within
			}
			c.diags.Errorf(CodeBadAddress, s.Pos, "set the subnet of the same family too", "the management network has no %s subnet for %s", family, s.Value)
		}
		return f
	case "auto":
		f.Subnet = fallback
	default:
		p, ok := c.prefix(subnet, "management subnet", fallback.Addr().Is4())
		if !ok {
			return f
		}
		if what := unusable(p); what != "" {
			c.diags.Errorf(CodeBadAddress, subnet.Pos, "choose a private one, such as "+fallback.String(), "management subnet %s holds %s addresses, which no host can have", p, what)
			return f
		}
		if p.Bits() > p.Addr().BitLen()-2 {
			c.diags.Errorf(CodeBadAddress, subnet.Pos, "choose a shorter prefix", "management subnet %s has no room for a gateway and a node", p)
			return f
		}
		f.Subnet = p.Masked()
	}
	f.Gateway = f.Subnet.Addr().Next()
	if subnet.Value == "auto" && f.Subnet != defaultIPv4 && f.Subnet != defaultIPv6 {
		f.Gateway = c.firstGateway(f.Subnet)
	}
	if gateway.Value != "" {
		if a, ok := c.address(gateway, "management gateway", false); ok {
			switch {
			case a == f.Subnet.Addr() || a.Is4() && a == alloc.Broadcast(f.Subnet):
				c.diags.Errorf(CodeBadAddress, gateway.Pos, "choose another address", "management gateway %s is the first or the last of %s, which hosts cannot use", a, f.Subnet)
			case f.Subnet.Contains(a):
				f.Gateway = a
			default:
				c.diags.Errorf(CodeBadAddress, gateway.Pos, "choose an address of "+f.Subnet.String(), "management gateway %s is not in the subnet", a)
			}
		}
	}
	if within.Value != "" {
		if p, ok := c.prefix(within, "management range", fallback.Addr().Is4()); ok {
			if f.Subnet.Overlaps(p) && p.Bits() >= f.Subnet.Bits() {
				f.Range = p.Masked()
			} else {
				c.diags.Errorf(CodeBadAddress, within.Pos, "choose a part of "+f.Subnet.String(), "management range %s is not in the subnet", p)
			}
		}
	}
	return f
}

// reserved are the ranges whose addresses no interface of a node can have (RFC 6890).
var reserved = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"}, {netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"}, {netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/127"), "unspecified or loopback"}, {netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// unusable names the kind of reserved addresses that a subnet holds; "" for none.
func unusable(p netip.Prefix) string {
	for _, r := range reserved {
		if r.prefix.Overlaps(p) {
			return r.what
		}
	}
	return ""
}

// unset reports the environment variable that a value still names, once for each: the
// value is no address because of it.
func (c *compiler) unset(s topology.Str) bool {
	m := unsetVariable.FindStringSubmatch(s.Value)
	if m == nil {
		return false
	}
	name := m[1]
	if !c.unsetTold[name] {
		c.unsetTold[name] = true
		c.diags.Errorf(topology.CodeEnv, s.Pos, "set it, or write a default: ${"+name+":-VALUE}", "the environment variable %s is not set", name)
	}
	return true
}

// prefix reads a prefix of one family.
func (c *compiler) prefix(s topology.Str, what string, v4 bool) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(s.Value)
	want, example := "an IPv6 prefix", "2001:db8::/64"
	if v4 {
		want, example = "an IPv4 prefix", "172.20.20.0/24"
	}
	if err != nil && c.unset(s) {
		return netip.Prefix{}, false
	}
	if err != nil || p.Addr().Is4() != v4 || p.Addr().Is4In6() {
		c.diags.Errorf(CodeBadAddress, s.Pos, "write it like "+example, "%s %q is not %s", what, s.Value, want)
		return netip.Prefix{}, false
	}
	return p, true
}

// address reads an address; a prefix length is allowed where withPrefix says so.
func (c *compiler) address(s topology.Str, what string, withPrefix bool) (netip.Addr, bool) {
	text := s.Value
	if withPrefix {
		text, _, _ = strings.Cut(text, "/")
	}
	a, err := netip.ParseAddr(text)
	if err != nil && c.unset(s) {
		return netip.Addr{}, false
	}
	if err != nil || a.Zone() != "" {
		c.diags.Errorf(CodeBadAddress, s.Pos, "write an IPv4 or IPv6 address", "%s %q is not an address", what, s.Value)
		return netip.Addr{}, false
	}
	return a.Unmap(), true
}

// compileMgmtAddresses reads the addresses in the topology. The others are allocated later.
func (c *compiler) compileMgmtAddresses(n *node) {
	for _, d := range n.res.levels {
		if d == n.res.own {
			continue
		}
		for _, s := range []topology.Str{d.MgmtIPv4, d.MgmtIPv6} {
			if s.Value != "" {
				c.diags.Warnf(CodeFieldIgnored, s.Pos, "write it on the node itself", "a management address outside a node has no effect, as in containerlab")
			}
		}
		if d.Aliases.Set && len(d.Aliases.Items) > 0 {
			c.diags.Warnf(CodeFieldIgnored, d.Aliases.Pos, "write them on the node itself", "aliases outside a node have no effect, as in containerlab")
		}
	}
	if s := n.res.str(func(d *topology.NodeDef) topology.Str { return d.MgmtNet }); s.IsSet() && !c.hasNetwork(s.Value) && c.keys.first(s.Pos) {
		c.diags.Errorf(CodeMgmtNetwork, s.Pos, "write "+c.lab.Mgmt.Network+", or remove mgmt-net",
			"mgmt-net %q of node %q is not the lab's management network, which is %q", s.Value, n.Name, c.lab.Mgmt.Network)
	}
	if n.res.own == nil {
		return
	}
	for _, s := range n.res.own.Aliases.Items {
		if s.Value == "" {
			c.diags.Errorf(CodeBadName, s.Pos, useLetters, "an alias of node %q is empty", n.Name)
		} else if c.name(s.Value, s.Pos, "an alias") {
			n.Aliases = append(n.Aliases, s.Value)
		}
	}
	v4, v6 := n.res.own.MgmtIPv4, n.res.own.MgmtIPv6
	if v4.Value != "" {
		n.want4, n.has4 = c.mgmtAddress(v4, c.lab.Mgmt.IPv4, true)
	}
	if v6.Value != "" {
		n.want6, n.has6 = c.mgmtAddress(v6, c.lab.Mgmt.IPv6, false)
	}
	n.MgmtStatic = n.has4 || n.has6
}

// mgmtAddress reads a node's own management address.
func (c *compiler) mgmtAddress(s topology.Str, f lab.MgmtFamily, v4 bool) (netip.Addr, bool) {
	a, ok := c.address(s, "management address", false)
	if !ok {
		return a, false
	}
	switch {
	case a.Is4() != v4:
		c.diags.Errorf(CodeBadAddress, s.Pos, "use mgmt-ipv4 for IPv4 and mgmt-ipv6 for IPv6", "management address %s is of the other family", a)
	case !f.Subnet.IsValid():
		c.diags.Errorf(CodeBadAddress, s.Pos, "set the subnet of that family under mgmt", "the management network has no subnet for %s", a)
	case !f.Subnet.Contains(a):
		c.diags.Errorf(CodeBadAddress, s.Pos, "choose an address of the subnet, or change mgmt", "management address %s is not in %s", a, f.Subnet)
	case a == f.Subnet.Addr() || v4 && a == alloc.Broadcast(f.Subnet):
		c.diags.Errorf(CodeBadAddress, s.Pos, "choose another address", "management address %s is the first or the last of %s, which hosts cannot use", a, f.Subnet)
	case a == f.Gateway:
		c.diags.Errorf(CodeBadAddress, s.Pos, "choose another address", "management address %s is the gateway's", a)
	default:
		return a, true
	}
	return a, false
}

// compileCA reads settings.certificate-authority.
func (c *compiler) compileCA() {
	if c.f.Settings == nil || c.f.Settings.CertificateAuthority == nil {
		return
	}
	s := c.f.Settings.CertificateAuthority
	ca := &lab.CA{KeySize: c.keySize(s.KeySize), ValiditySeconds: c.duration(s.ValidityDuration, "validity-duration")}
	if (s.Cert.Value == "") != (s.Key.Value == "") {
		c.diags.Errorf(topology.CodeMissingField, s.Pos, "set both cert and key, or neither", "an external certificate authority needs a certificate and its key")
	}
	stage := func(v topology.Str, what string, secret bool) *lab.FileRef {
		if v.Value == "" {
			return nil
		}
		ref, ok := c.files.file(v.Value, v.Pos, what)
		if !ok {
			return nil
		}
		ref.Secret = secret
		return &ref
	}
	ca.Cert = stage(s.Cert, "CA certificate", false)
	ca.Key = stage(s.Key, "CA key", true)
	c.lab.CA = ca
}

// checkVocabulary reports fields that have no effect or are rejected: each once,
// at the first place.
func (c *compiler) checkVocabulary() {
	count := map[string]int{}
	firstPos := map[string]diag.Pos{}
	var order []string
	for _, u := range c.f.Uses {
		if count[u.Field]++; count[u.Field] == 1 {
			order = append(order, u.Field)
			firstPos[u.Field] = u.Pos
		}
	}
	for _, path := range order {
		found, _ := topology.Lookup(path)
		if len(found) == 0 {
			continue
		}
		field := found[0]
		more := ""
		if n := count[path]; n > 1 {
			more = " (and in " + diag.Count(n-1, "more place") + ")"
		}
		if field.Treatment == topology.Refused {
			c.diags.Errorf(CodeFieldRefused, firstPos[path], "remove it", "%s is rejected%s: %s", lastPart(path), more, field.Here)
			continue
		}
		c.diags.Warnf(CodeFieldIgnored, firstPos[path], "none needed: containerlab still uses it", "%s is ignored%s: %s", lastPart(path), more, asReason(field.Here))
	}
}

// asReason turns a sentence of the vocabulary into the end of another one.
func asReason(sentence string) string {
	sentence = strings.TrimSuffix(sentence, ".")
	if strings.HasPrefix(sentence, "Kubernetes ") {
		return sentence
	}
	return strings.ToLower(sentence[:1]) + sentence[1:]
}

func lastPart(path string) string { return path[strings.LastIndex(path, ".")+1:] }
