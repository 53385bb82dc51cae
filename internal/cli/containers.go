//go:build !nocluster

package cli

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// shortID is what docker and containerlab print of an ID.
func shortID(id string) string { return id[:min(12, len(id))] }

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// containerLabels are the labels that containerlab gives a container, and the topology's.
func containerLabels(c *cluster.Container) map[string]string {
	out := maps.Clone(c.Labels)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, map[string]string{
		"containerlab": c.Lab.Name, "clab-node-name": c.Name, "clab-node-longname": c.LongName, "clab-node-kind": c.Kind,
		"clab-topo-file": topologyPath(c.Source),
	})
	return out
}

// containerStatus is the state of a container as docker ps writes it.
func containerStatus(c *cluster.Container) string {
	ago := func(t time.Time) string { return duration.HumanDuration(time.Since(t)) }
	switch word := c.Word(); {
	case word == "running":
		text := "Up " + ago(c.State.State.Running.StartedAt.Time)
		if c.State.Ready {
			return text + " (healthy)"
		}
		return text + " (health: starting)"
	case word == "created":
		return "Created"
	case word == "restarting":
		return "Restarting"
	case c.State != nil && c.State.State.Terminated != nil:
		t := c.State.State.Terminated
		return fmt.Sprintf("Exited (%d) %s ago", t.ExitCode, ago(t.FinishedAt.Time))
	}
	return "Exited (0)"
}

// containerDetail is a container with the keys of containerlab's inspect --details.
type containerDetail struct {
	Names           []string
	ID              string
	ShortID         string
	Image           string
	State           string
	Status          string
	Labels          map[string]string
	Pid             int
	NetworkName     string
	NetworkSettings mgmtAddresses
	Mounts          []struct{}
	Ports           []struct{}
}

// mgmtAddresses are the management addresses of a container, with containerlab's keys.
type mgmtAddresses struct {
	IPv4addr string
	IPv4pLen int
	IPv4Gw   string
	IPv6addr string
	IPv6pLen int
	IPv6Gw   string
}

// mgmtNetwork is containerlab's name of the management network.
const mgmtNetwork = "clab"

// detailOf describes a container. mgmt is the management section of its Pod or of any other of
// the lab, nil if it is not known.
func detailOf(c *cluster.Container, mgmt *contract.Mgmt) containerDetail {
	return containerDetail{
		Names: []string{c.LongName}, ID: c.ID, ShortID: shortID(c.ID), Image: c.Image, State: c.Word(), Status: containerStatus(c),
		Labels: containerLabels(c), NetworkName: mgmtNetwork, NetworkSettings: addressesOf(c, mgmt), Mounts: []struct{}{}, Ports: []struct{}{},
	}
}

func addressesOf(c *cluster.Container, mgmt *contract.Mgmt) mgmtAddresses {
	if mgmt == nil {
		mgmt = &contract.Mgmt{}
	}
	text := func(a netip.Addr) string {
		if !a.IsValid() {
			return ""
		}
		return a.String()
	}
	out := mgmtAddresses{IPv4addr: text(c.Directory.IPv4), IPv6addr: text(c.Directory.IPv6), IPv4Gw: text(mgmt.GatewayV4), IPv6Gw: text(mgmt.GatewayV6)}
	if out.IPv4addr != "" && mgmt.IPv4.IsValid() {
		out.IPv4pLen = mgmt.IPv4.Bits()
	}
	if out.IPv6addr != "" && mgmt.IPv6.IsValid() {
		out.IPv6pLen = mgmt.IPv6.Bits()
	}
	return out
}

// withLength is an address with the length of its network, "N/A" for none, as containerlab
// writes it.
func withLength(a string, length int) string {
	if a == "" {
		return "N/A"
	}
	return fmt.Sprintf("%s/%d", a, length)
}

// calledSo reports whether a container goes by a name: its own or that of its Pod, NODE.LAB, or
// the beginning of its ID.
func calledSo(c *cluster.Container, name string) bool {
	name = strings.TrimPrefix(name, "/")
	switch {
	case name == c.LongName, c.Pod != nil && name == c.Pod.Name, name == c.Name+"."+c.Lab.Name:
		return true
	}
	return len(name) >= leastID && strings.HasPrefix(c.ID, name)
}

// leastID is how much of an ID names a container.
const leastID = 4
