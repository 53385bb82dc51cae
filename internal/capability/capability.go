//go:build !linux

// Package capability drops capabilities of the running program; other systems than Linux have
// none.
package capability
