package plan

import (
	"strconv"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// iolPorts is the number of ports in a slot of an IOL.
const iolPorts = 4

// iolPrepare sets the management port. If it is not the first port, it also sets the number
// of slots in use, which the launcher then requires.
func iolPrepare(d *draft) {
	x, mgmt := d.data, kinds.ManagementPort(d.node, iolPorts)
	x.MgmtSlot, x.MgmtPort = mgmt/iolPorts, mgmt%iolPorts
	if mgmt == 0 {
		return
	}
	highest := mgmt
	for _, e := range d.node.Endpoints {
		highest = max(highest, firstNumber(e.Interface))
	}
	if _, ok := x.Env["CLAB_IOL_NUM_SLOTS"]; !ok {
		x.Env["CLAB_IOL_NUM_SLOTS"] = strconv.Itoa(highest/iolPorts + 1)
	}
}

// aroundManagement assigns the first port to the interface whose port the management
// interface occupies.
func (x *NodeData) aroundManagement() {
	for i := range x.endpoints {
		if e := &x.endpoints[i]; e.Slot == x.MgmtSlot && e.Port == x.MgmtPort {
			e.Slot, e.Port = 0, 0
		}
	}
}
