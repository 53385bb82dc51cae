package link

import (
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
)

// TestDeadRedirects: a launcher joins an interface to a tap. When the tap is gone, so is the
// filter that led there; one to an interface that is there stays.
func TestDeadRedirects(t *testing.T) {
	p := newTestPod(t)
	p.good(nil, testWire("eth1", 1), testWire("eth2", 2))
	taps := map[string]netlink.Link{}
	for _, name := range []string{"tap1", "tap2"} {
		if err := p.nlDev.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "b"}); err != nil {
			t.Fatal(err)
		}
		taps[name] = p.device(name)
	}
	for dev, tap := range map[string]string{"eth1": "tap1", "eth2": "tap2"} {
		if err := redirect(p.nlDev, p.device(dev), taps[tap]); err != nil {
			t.Fatal(err)
		}
	}
	filters := func(dev string) (n int) {
		t.Helper()
		all, err := p.nlDev.FilterList(p.device(dev), netlink.HANDLE_MIN_INGRESS)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if u, ok := f.(*netlink.U32); ok && len(u.Actions) > 0 {
				n++
			}
		}
		return n
	}
	p.good(nil, testWire("eth1", 1), testWire("eth2", 2))
	if one, two := filters("eth1"), filters("eth2"); one != 1 || two != 1 {
		t.Fatalf("%d and %d filters", one, two)
	}
	if err := p.nlDev.LinkDel(taps["tap1"]); err != nil {
		t.Fatal(err)
	}
	p.good(nil, testWire("eth1", 1), testWire("eth2", 2))
	if one, two := filters("eth1"), filters("eth2"); one != 0 || two != 1 {
		t.Errorf("%d and %d filters are left, want 0 and 1", one, two)
	}
}

// TestDeadRedirectOf reads the messages of classifiers that this kernel may lack.
func TestDeadRedirectOf(t *testing.T) {
	message := func(kind string, where int, ifindex int) []byte {
		options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
		if err := netlink.EncodeActions(options.AddRtAttr(where, nil), []netlink.Action{
			&netlink.MirredAction{MirredAction: netlink.TCA_EGRESS_REDIR, Ifindex: ifindex},
		}); err != nil {
			t.Fatal(err)
		}
		b := append((&nl.TcMsg{}).Serialize(), nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(kind)).Serialize()...)
		return append(b, options.Serialize()...)
	}
	for kind, where := range map[string]int{"flower": nl.TCA_FLOWER_ACT, "matchall": nl.TCA_MATCHALL_ACT, "u32": nl.TCA_U32_ACT} {
		if got, dead := deadRedirect(message(kind, where, 0)); got != kind || !dead {
			t.Errorf("%s to nothing: %q %v", kind, got, dead)
		}
		if got, dead := deadRedirect(message(kind, where, 7)); got != kind || dead {
			t.Errorf("%s to an interface: %q %v", kind, got, dead)
		}
	}
	for _, short := range [][]byte{nil, {1, 2, 3}, message("flower", nl.TCA_FLOWER_ACT, 0)[:60]} {
		if _, dead := deadRedirect(short); dead {
			t.Errorf("%d bytes are a dead redirect", len(short))
		}
	}
}
