// Package vxlan carries wires by the kernel's VXLAN: one device per wire, joined to the
// leg by tc redirects both ways.
package vxlan
