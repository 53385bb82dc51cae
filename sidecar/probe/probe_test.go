package probe

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// Even with every feature missing in many words, a report fits into the 4096 bytes
// that a container may leave as its last word.
func TestReportFits(t *testing.T) {
	r := Report{Version: Version, Kernel: strings.Repeat("k", 64), MTU: 65535, DNS: outcome("", errors.New(strings.Repeat("x", 500))).Error}
	for _, f := range []Feature{Veth, Bridge, Dummy, VXLAN, Macvlan, VLAN, Rules, NAT, Conntrack, Redirect, Flower, Shield, Packet, VnetHeader, Segment, TUN, KVM} {
		r.Features = append(r.Features, outcome(f, errors.New(strings.Repeat("long ", 100))))
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 4096 {
		t.Errorf("the report has %d bytes", len(data))
	}
}

func TestOutcome(t *testing.T) {
	r := Report{Features: []Outcome{outcome(Veth, nil), outcome(KVM, errors.New("no such file"))}}
	for _, c := range []struct {
		feature Feature
		known   bool
		err     string
	}{{Veth, true, ""}, {KVM, true, "no such file"}, {TUN, false, ""}} {
		got, ok := r.Outcome(c.feature)
		if ok != c.known || got.Error != c.err {
			t.Errorf("%s: known %v, error %q; want %v, %q", c.feature, ok, got.Error, c.known, c.err)
		}
	}
}
