package link

import "errors"

// Quiet prevents the kernel from answering on a leg. The leg may be in the namespace of the
// device, where the kernel would answer ARP for the device's own addresses.
func Quiet(name string) error {
	return errors.Join(
		noAddresses(name),
		// Never answer (Documentation/networking/ip-sysctl.rst).
		SetSysctl("8", "net", "ipv4", "conf", name, "arp_ignore"),
	)
}
