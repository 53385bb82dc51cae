package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// dropDeadRedirects deletes the tc filters of the device's interfaces that redirect frames to
// an interface that is gone. They drop everything, and the kernel keeps them as long as the
// network namespace, which outlives the device's container. So the launcher of a virtual
// machine that starts again could not join the new tap: it finds its filter there already.
// In Docker a container that starts again has new interfaces.
func (r *round) dropDeadRedirects() error {
	qdiscs, err := r.dev.nl.QdiscList(nil)
	if err != nil {
		return fmt.Errorf("tc of the device's interfaces: %w", err)
	}
	var errs []error
	for _, q := range qdiscs {
		if q.Type() != "clsact" {
			continue
		}
		errs = append(errs, r.dev.do(func() error {
			for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
				if err := dropDead(q.Attrs().LinkIndex, parent); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

// dropDead deletes such filters of one hook of an interface of the caller's namespace.
func dropDead(index int, parent uint32) error {
	request := nl.NewNetlinkRequest(unix.RTM_GETTFILTER, unix.NLM_F_DUMP)
	request.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(index), Parent: parent})
	filters, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWTFILTER)
	if err != nil {
		if gone(err) {
			return nil
		}
		return fmt.Errorf("tc filters: %w", err)
	}
	for _, f := range filters {
		kind, dead := deadRedirect(f)
		if !dead {
			continue
		}
		have := nl.DeserializeTcMsg(f)
		request := nl.NewNetlinkRequest(unix.RTM_DELTFILTER, unix.NLM_F_ACK)
		request.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: have.Ifindex, Parent: have.Parent, Handle: have.Handle, Info: have.Info})
		request.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(kind)))
		if _, err := request.Execute(unix.NETLINK_ROUTE, 0); err != nil && !gone(err) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("delete a tc filter to an interface that is gone: %w", err)
		}
	}
	return nil
}

// actionsOf are the attributes in which classifiers have their actions (linux/pkt_cls.h). The
// library does not read those of all.
var actionsOf = map[string]uint16{"u32": nl.TCA_U32_ACT, "matchall": nl.TCA_MATCHALL_ACT, "flower": nl.TCA_FLOWER_ACT, "bpf": nl.TCA_BPF_ACT}

// deadRedirect reports whether a filter, as in a netlink message, redirects or copies to an
// interface that is gone: the kernel then says interface 0.
func deadRedirect(message []byte) (kind string, dead bool) {
	if len(message) < nl.SizeofTcMsg {
		return "", false
	}
	attrs := attributes(message[nl.SizeofTcMsg:])
	kind = text(attrs[nl.TCA_KIND])
	where, known := actionsOf[kind]
	if !known {
		return kind, false
	}
	for _, action := range attributes(attributes(attrs[nl.TCA_OPTIONS])[where]) {
		a := attributes(action)
		if text(a[nl.TCA_ACT_KIND]) != "mirred" {
			continue
		}
		// struct tc_mirred: five words of all actions, the direction, the interface.
		const ifindex = 6 * 4
		parms := attributes(a[nl.TCA_ACT_OPTIONS])[nl.TCA_MIRRED_PARMS]
		if len(parms) >= ifindex+4 && binary.NativeEndian.Uint32(parms[ifindex:]) == 0 {
			return kind, true
		}
	}
	return kind, false
}

// text reads a string, which ends with a zero.
func text(b []byte) string { return strings.TrimRight(string(b), "\x00") }

// attributes reads netlink attributes by type.
func attributes(b []byte) map[uint16][]byte {
	out := map[uint16][]byte{}
	list, err := nl.ParseRouteAttr(b)
	if err != nil {
		return out
	}
	for _, a := range list {
		out[a.Attr.Type&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER)] = a.Value
	}
	return out
}
