// Package contract holds what the CLI, the sidecar, the exec helper and the
// controller agree on: the documents that one writes and another reads, and the
// names, labels, ports and paths at which they find each other.
//
// Running labs depend on it. A change to a JSON shape needs a new version string,
// and a change to a name or a label restarts or orphans what is deployed.
//
// The sidecar imports this package, so it imports nothing but the standard library.
package contract
