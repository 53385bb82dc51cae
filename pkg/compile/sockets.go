package compile

import (
	"regexp"
	"strings"
)

// engines are the programs whose sockets let a container command the machine that runs
// it: container engines, the runtimes below them, and what bundles them.
const engines = `docker|dockerd|dockershim|docker-proxy|containerd|crio|cri-o|cri-dockerd|podman|buildkit|buildkitd|nerdctl|` +
	`k3s|k0s|rke2|microk8s|kubelet|isulad|balena|balena-engine|lxd|incus|nomad|colima|lima|rancher-desktop`

var (
	// engineSocket is a socket that an engine's name is part of, wherever it is.
	engineSocket = regexp.MustCompile(`/(?:[a-z0-9.-]*[._-])?(?:` + engines + `)(?:[._-][a-z0-9._-]*)?\.sock(?:et)?$`)
	// engineFolder is an engine's folder of sockets, and what is in it.
	engineFolder = regexp.MustCompile(`^/run/(?:user/[0-9]+/)?(?:` + engines + `)(?:$|/|\.)`)
	// runFolder is a folder that engines' folders are in.
	runFolder = regexp.MustCompile(`^/(?:run(?:/user(?:/[0-9]+)?)?|var)$`)
)

// engineData is where an engine keeps images and containers.
var engineData = regexp.MustCompile(`^/var/lib/(?:` + engines + `|containers)(?:$|/)`)

// isEngineData reports whether a clean, absolute path is an engine's own data.
func isEngineData(p string) bool { return engineData.MatchString(p) }

// process is a process's view of the file system: the worker's own, from its root on,
// or what it has open.
var process = regexp.MustCompile(`^/(?:proc/(?:[0-9]+|self|thread-self)|dev/(?:fd|stdin|stdout|stderr))(?:$|/)`)

// givesEngineSocket reports whether a clean, absolute path is an engine's socket, or a
// folder that one may be in.
func givesEngineSocket(p string) bool {
	if rest, ok := strings.CutPrefix(p, "/var/run"); ok && (rest == "" || rest[0] == '/') {
		p = "/run" + rest
	}
	return engineSocket.MatchString(p) || engineFolder.MatchString(p) || runFolder.MatchString(p)
}
