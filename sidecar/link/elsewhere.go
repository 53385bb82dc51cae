package link

import (
	"encoding/binary"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Attributes of linux/net_namespace.h and linux/if_link.h that the netlink
// package has no names for.
const (
	netnsaNSID = 1
	// rtgenmsgLen is struct rtgenmsg with the padding that attributes want.
	rtgenmsgLen       = 4
	iflaTargetNetNSID = 46
)

// elsewhere reports whether the device moved the interface to another namespace. An
// interface without a leg leaves no other trace, but each namespace that an interface was
// moved to has an id here, which kernel requests accept.
func (r *round) elsewhere(k Key) bool {
	found := false
	_ = r.dev.do(func() error { _, _, found = findElsewhere(k); return nil })
	return found
}

// removeElsewhere deletes an interface without a leg in the namespace that the device moved
// it to. An interface that is not found no longer exists.
func (r *round) removeElsewhere(i *contract.Interface) {
	if err := r.dev.do(func() error { return removeElsewhere(KeyOf(i)) }); err != nil {
		r.fail(KeyOf(i), err)
	}
}

func removeElsewhere(k Key) error {
	nsid, index, found := findElsewhere(k)
	if !found {
		return nil
	}
	req := nl.NewNetlinkRequest(unix.RTM_DELLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = index
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(iflaTargetNetNSID, nl.Uint32Attr(uint32(nsid))))
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil && !gone(err) {
		return err
	}
	return nil
}

func findElsewhere(k Key) (nsid, index int32, found bool) {
	for _, id := range nsids() {
		req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_ACK)
		req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		req.AddData(nl.NewRtAttr(iflaTargetNetNSID, nl.Uint32Attr(uint32(id))))
		req.AddData(nl.NewRtAttr(unix.IFLA_ALT_IFNAME, nl.ZeroTerminated(ownerAlt(k))))
		msgs, err := req.Execute(unix.NETLINK_ROUTE, 0)
		if err == nil && len(msgs) > 0 {
			return id, nl.DeserializeIfInfomsg(msgs[0]).Index, true
		}
	}
	return 0, 0, false
}

// nsids returns the ids of all namespaces known to this one.
func nsids() []int32 {
	req := nl.NewNetlinkRequest(unix.RTM_GETNSID, unix.NLM_F_DUMP)
	req.AddData(nl.NewRtGenMsg())
	msgs, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNSID)
	if err != nil {
		return nil
	}
	var ids []int32
	for _, m := range msgs {
		attrs, err := nl.ParseRouteAttr(m[rtgenmsgLen:])
		if err != nil {
			continue
		}
		for _, a := range attrs {
			if a.Attr.Type == netnsaNSID && len(a.Value) >= 4 {
				if id := int32(binary.NativeEndian.Uint32(a.Value)); id >= 0 {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids
}
