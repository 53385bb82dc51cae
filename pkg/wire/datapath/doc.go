// Package datapath is what the datapaths of the wire share: the interface between them
// and the fabric, and the machinery that moves frames in user space (legs, batches of
// system calls, workers).
package datapath
