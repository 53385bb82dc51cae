package render

import (
	"path"
	"strings"
)

// keptSecret reports whether the policy's secretFiles keep a file of the node's
// folder out of ConfigMaps: a pattern (path.Match) that meets the file's path in
// the device, or that of a folder above it, mount targets included.
func keptSecret(m member, name string) bool {
	if len(m.node.Policy.SecretFiles) == 0 {
		return false
	}
	for _, c := range m.plan.Containers {
		for _, mount := range c.Mounts {
			if target, ok := inDevice(mount.Path, mount.Target, name); ok && secretPath(m, target) {
				return true
			}
		}
	}
	return false
}

// inDevice is where a file of the node's folder is in the device, by the mount of
// from at target.
func inDevice(from, target, name string) (string, bool) {
	if from == "" {
		return "", false
	}
	switch from {
	case ".":
		return path.Join(target, name), true
	case name:
		return target, true
	}
	rest, ok := strings.CutPrefix(name, from+"/")
	return path.Join(target, rest), ok
}

// secretPath reports whether a pattern meets target or a folder above it.
func secretPath(m member, target string) bool {
	for p := path.Clean(target); p != "/" && p != "."; p = path.Dir(p) {
		for _, pattern := range m.node.Policy.SecretFiles {
			if ok, err := path.Match(pattern, p); ok && err == nil {
				return true
			}
		}
	}
	return false
}
