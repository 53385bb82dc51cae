// Package memory is a datapath between the fabrics of one process. It serves tests, and
// as the shortest example of a datapath that is handed the frames in user space.
package memory
