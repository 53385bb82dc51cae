package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Names of a lab's objects.
const (
	// NodeServiceAccount is the ServiceAccount of node Pods. It has no rights.
	NodeServiceAccount = "c9s-node"
	// WireKeySecret holds the key of the wire's hello under WireKeyKey.
	WireKeySecret = "c9s-wire-key"
	WireKeyKey    = "key"
	// CASecret holds the lab's certificate authority.
	CASecret = "c9s-ca"
	// ControllerName names the controller's ServiceAccount, Role, RoleBinding,
	// Deployment and Lease.
	ControllerName = "c9s-controller"
	// StatusConfigMap and AddressesConfigMap are filled by the controller. They
	// are rendered without data, so that applying them again keeps the data.
	StatusConfigMap    = "c9s-status"
	AddressesConfigMap = "c9s-addresses"
)

// MaxLabel is the length of the longest DNS label (RFC 1035, 2.3.4) and of the
// longest value of a Kubernetes label.
const MaxLabel = 63

// ServiceName returns the name of one of a node's Services: the ID, "-" and a
// suffix. A digest replaces the end of an ID that makes the name longer than a DNS
// label may be.
func ServiceName(id, suffix string) string {
	name := id + "-" + suffix
	if len(name) <= MaxLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := "-" + hex.EncodeToString(sum[:3]) + "-" + suffix
	return id[:MaxLabel-len(tail)] + tail
}

// LabService is the headless Service of a lab. Its names resolve to the Pods, whether or
// not they are ready.
const LabService = "c9s-nodes"

// SharedService is the lab's one load balancer, for nodes whose policy says so.
const SharedService = "c9s-shared"

// SharedPortName is the name of a container's port by which SharedService finds it: port is
// the load balancer's, and protocol is tcp, udp or sctp.
func SharedPortName(protocol string, port uint16) string {
	return "c9s-" + strings.ToLower(protocol) + "-" + strconv.Itoa(int(port))
}

// SharedPort returns the load balancer's port of a container's port with this name.
func SharedPort(name string) (uint16, bool) {
	rest, ok := strings.CutPrefix(name, "c9s-")
	if !ok {
		return 0, false
	}
	_, text, _ := strings.Cut(rest, "-")
	port, err := strconv.ParseUint(text, 10, 16)
	return uint16(port), err == nil && port > 0
}

// PodHost returns the name at which the lab's Pods find a Pod: Pods have their name as
// hostname and LabService as subdomain.
func PodHost(pod string) string { return pod + "." + LabService }

// LinksConfigMap returns the name of the ConfigMap with the connectivity of a Pod.
func LinksConfigMap(pod string) string { return pod + "-links" }

// CertificateSecret returns the name of the Secret with a node's certificate (keys
// ca.crt, tls.crt, tls.key). Pods mount it as optional.
func CertificateSecret(id string) string { return ServiceName(id, "tls") }

// AllocationsName returns the name of the ConfigMap with part i of the allocations,
// 0-based.
func AllocationsName(i int) string { return numbered("c9s-allocations", i) }

// AllocationsKey returns the key of part i in its ConfigMap.
func AllocationsKey(i int) string { return numbered("allocations", i) + ".json" }

func numbered(name string, i int) string {
	if i == 0 {
		return name
	}
	return name + "-" + strconv.Itoa(i)
}

// ShortDigest returns the first 10 hexadecimal digits of the SHA-256 of parts. Each
// part is preceded by its length, so that different lists never collide by
// concatenation.
func ShortDigest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		for i, l := 0, len(p); i < 8; i, l = i+1, l>>8 {
			n[i] = byte(l)
		}
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:5])
}

// Fit shortens a name to limit characters. A digest of the whole name replaces the
// end.
func Fit(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	return strings.TrimRight(name[:limit-7], "-._") + "-" + ShortDigest(name)[:6]
}

// Slug makes a DNS label (RFC 1123) of any text: lower case, "-" for every run of
// other characters, at most limit characters. It may be empty.
func Slug(text string, limit int) string {
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(text)) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteByte(c)
		case b.Len() > 0 && b.String()[b.Len()-1] != '-':
			b.WriteByte('-')
		}
	}
	return Fit(strings.TrimRight(b.String(), "-"), limit)
}

// LabelValue makes a legal label value of any text. It keeps case and "-._".
func LabelValue(text string) string {
	return Fit(strings.Trim(Legal(text, '-'), "-._"), MaxLabel)
}

// Legal replaces each byte that neither a label value nor a data key can have, all
// but letters, digits, "-", "." and "_", with another.
func Legal(text string, by byte) string {
	b := []byte(text)
	for i, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_':
		default:
			b[i] = by
		}
	}
	return string(b)
}

// SharedVolume is the Pod's volume with the claim that the user created for volumes of
// several Pods.
const SharedVolume = "shared"

// ExternalVolume begins the names of volumes with Secrets and ConfigMaps that the user created.
const ExternalVolume = "external-"
