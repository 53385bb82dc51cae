package nft

import (
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// groupNFTables is NFNLGRP_NFTABLES (linux/netfilter/nfnetlink.h).
const groupNFTables = 7

// Watch calls changed after somebody changed a ruleset, until the returned
// function is called. Changes are not looked at: what matters is what is there
// afterwards.
func Watch(changed func()) (stop func(), err error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{Groups: 1 << (groupNFTables - 1)})
	if err != nil {
		return nil, fmt.Errorf("watch nftables: %w", err)
	}
	go func() {
		for {
			// A full buffer means many changes; anything else is the end.
			if _, err := conn.Receive(); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return
			}
			changed()
		}
	}()
	return func() { conn.Close() }, nil
}
