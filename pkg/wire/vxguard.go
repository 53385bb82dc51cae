package wire

// TableName is the nftables table of family inet that keeps strangers from the
// vxlan datapath.
const TableName = "c9s-wire"
