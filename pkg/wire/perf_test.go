//go:build linux

package wire

import (
	"fmt"
	"os"
	"testing"
)

// TestPerfOne is a workbench.
func TestPerfOne(t *testing.T) {
	mode := os.Getenv("PERF")
	if mode == "" {
		t.Skip("no PERF")
	}
	mtu := 1500
	fmt.Sscan(os.Getenv("MTU"), &mtu)
	s := subjects()[3]
	if os.Getenv("SUBJ") != "" {
		var i int
		fmt.Sscan(os.Getenv("SUBJ"), &i)
		s = subjects()[i]
	}
	a, b, stop := s.make(t, mtu)
	defer stop()
	switch mode {
	case "tcp":
		fmt.Println(tcpRate(t, a, b, seconds("SECS", 3)))
	case "pps":
		fmt.Println(packetRate(t, a, b, seconds("SECS", 3)))
	case "ping":
		fmt.Println(pingMedian(t, a, 2000))
	}
}
