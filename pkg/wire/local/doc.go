// Package local carries wires between two Pods of one worker in the kernel. The sidecars
// meet at sockets in a folder of the worker, prove the lab's key, and give each other their
// network namespaces. Each end then makes a veth pair across the two, by which it receives.
package local
