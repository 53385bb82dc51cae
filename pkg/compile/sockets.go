package compile

import (
	"regexp"
	"strings"
)

// engines are the programs whose sockets let a container control its machine: container
// engines, their runtimes, and distributions of them.
const engines = `docker|dockerd|dockershim|docker-proxy|containerd|crio|cri-o|cri-dockerd|podman|buildkit|buildkitd|nerdctl|` +
	`k3s|k0s|rke2|microk8s|kubelet|isulad|balena|balena-engine|lxd|incus|nomad|colima|lima|rancher-desktop`

var (
	// engineSocket matches a socket anywhere whose name contains that of an engine.
	engineSocket = regexp.MustCompile(`/(?:[a-z0-9.-]*[._-])?(?:` + engines + `)(?:[._-][a-z0-9._-]*)?\.sock(?:et)?$`)
	// engineFolder matches an engine's folder of sockets and its contents.
	engineFolder = regexp.MustCompile(`^/run/(?:user/[0-9]+/)?(?:` + engines + `)(?:$|/|\.)`)
	// runFolder matches a folder that contains the folders of engines.
	runFolder = regexp.MustCompile(`^/(?:run(?:/user(?:/[0-9]+)?)?|var)$`)
)

// engineData matches the folders where engines store images and containers.
var engineData = regexp.MustCompile(`^/var/lib/(?:` + engines + `|containers)(?:$|/)`)

// namespaces matches the folders of network namespaces.
var namespaces = regexp.MustCompile(`^(?:/var)?/run/netns(?:$|/)`)

// isEngineData reports whether a clean, absolute path is an engine's own data.
func isEngineData(p string) bool { return engineData.MatchString(p) }

// process matches a process's view of the file system: the worker's root, or the files that
// the process has open.
var process = regexp.MustCompile(`^/(?:proc/(?:[0-9]+|self|thread-self)|dev/(?:fd|stdin|stdout|stderr))(?:$|/)`)

// givesEngineSocket reports whether a clean, absolute path is an engine's socket, or a
// folder that one may be in.
func givesEngineSocket(p string) bool {
	if rest, ok := strings.CutPrefix(p, "/var/run"); ok && (rest == "" || rest[0] == '/') {
		p = "/run" + rest
	}
	return engineSocket.MatchString(p) || engineFolder.MatchString(p) || runFolder.MatchString(p)
}
