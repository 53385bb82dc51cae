package contract

// The ports that the sidecar uses on the Pod address. A device cannot publish
// them.
const (
	// WirePort is the fabric wire, UDP.
	WirePort = 14800
	// MgmtPort is the VXLAN of the management network, UDP.
	MgmtPort = 14801
	// StatusPort is the sidecar's HTTP server: probes, status, stages; TCP.
	StatusPort = 14802
	// VXLANPort is the wire's vxlan datapath, UDP.
	VXLANPort = 14803
)

// ControllerPort is the controller's HTTP server: probes and status; TCP.
const ControllerPort = 8080
