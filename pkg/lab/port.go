package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Ports of the lab's shared load balancer: each node has a range of SharedPorts ports from
// FirstSharedPort to LastSharedPort. They are above the ports of Kubernetes' own programs and below
// node ports, since some load balancers open them on the workers.
const (
	FirstSharedPort = 11000
	LastSharedPort  = 29999
	SharedPorts     = 20
)

// ParsePort reads one published port in Docker's syntax, [[ip:]host:]container[/protocol],
// where host and container may be ranges of the same length. It returns one port
// per container port.
func ParsePort(text string) ([]Port, error) {
	rest, protocol, _ := strings.Cut(text, "/")
	if protocol == "" {
		protocol = "tcp"
	}
	switch protocol = strings.ToUpper(protocol); protocol {
	case "TCP", "UDP", "SCTP":
	default:
		return nil, fmt.Errorf("protocol %q is not tcp, udp or sctp", strings.ToLower(protocol))
	}
	host, container, err := splitPort(rest)
	if err != nil {
		return nil, err
	}
	first, last, err := portRange(container)
	if err != nil {
		return nil, err
	}
	hostFirst, hostLast := 0, 0
	if host != "" {
		if hostFirst, hostLast, err = portRange(host); err != nil {
			return nil, err
		}
		if first != last && hostLast-hostFirst != last-first {
			return nil, errors.New("the two ranges differ in length")
		}
	}
	out := make([]Port, 0, last-first+1)
	for p := first; p <= last; p++ {
		port := Port{Container: uint16(p), Protocol: protocol}
		if hostFirst != 0 {
			port.Host = uint16(hostFirst + p - first)
		}
		out = append(out, port)
	}
	return out, nil
}

// PortName is the name of a published port in a Service: "tcp-80".
func PortName(p Port) string {
	return strings.ToLower(p.Protocol) + "-" + strconv.Itoa(int(p.Container))
}

// splitPort takes an address and a host part off a port.
func splitPort(text string) (host, container string, err error) {
	if strings.HasPrefix(text, "[") {
		addr, rest, ok := strings.Cut(text[1:], "]:")
		if _, aerr := netip.ParseAddr(addr); !ok || aerr != nil {
			return "", "", fmt.Errorf("%q is not an address", addr)
		}
		text = rest
		if !strings.Contains(text, ":") {
			return "", text, nil
		}
	} else if strings.Count(text, ":") > 1 {
		i := strings.LastIndex(text[:strings.LastIndex(text, ":")], ":")
		if _, aerr := netip.ParseAddr(text[:i]); aerr != nil {
			return "", "", fmt.Errorf("%q is not an address", text[:i])
		}
		text = text[i+1:]
	}
	if before, after, ok := strings.Cut(text, ":"); ok {
		return before, after, nil
	}
	return "", text, nil
}

func portRange(text string) (first, last int, err error) {
	a, b, isRange := strings.Cut(text, "-")
	if first, err = portNumber(a); err != nil {
		return 0, 0, err
	}
	if !isRange {
		return first, first, nil
	}
	if last, err = portNumber(b); err != nil {
		return 0, 0, err
	}
	if last < first {
		return 0, 0, fmt.Errorf("the range %s is backwards", text)
	}
	return first, last, nil
}

func portNumber(text string) (int, error) {
	v, err := strconv.ParseUint(text, 10, 16)
	if err != nil || v == 0 {
		return 0, fmt.Errorf("%q is not a port from 1 to 65535", text)
	}
	return int(v), nil
}
