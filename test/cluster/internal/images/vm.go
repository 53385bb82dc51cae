package images

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// VM is the name of the image with a virtual machine.
const VM = "c9s.test/vm:latest"

//go:embed vm
var vmFiles embed.FS

// vm has a virtual machine in its container, as the images of vrnetlab do. The machine boots
// a small Linux in seconds, with KVM or without.
var vm = device{
	packages: []string{"busybox-static", "dropbear-bin", "iproute2", "iputils-ping", "procps", "python3-minimal", "qemu-system-x86", "qemu-utils"},
	files: map[string]file{
		"launch.py":      {mode: 0o755, text: vmFile("launch.py")},
		"healthcheck.py": {mode: 0o755, text: []byte("#!/bin/sh\nread code text </health; echo $text; exit ${code:-2}\n")},
	},
	script: vmScript(),
}

// vmScript hands the scripts of the machine's system to what builds it.
func vmScript() string {
	var b strings.Builder
	b.WriteString("mkdir -p /tmp/guest\n")
	for _, name := range []string{"init", "conf", "account", "save"} {
		fmt.Fprintf(&b, "cat >/tmp/guest/%s <<'END_OF_SCRIPT'\n%sEND_OF_SCRIPT\n", name, vmFile(name))
	}
	b.Write(vmFile("build.sh"))
	return b.String()
}

func vmFile(name string) []byte {
	text, err := fs.ReadFile(vmFiles, "vm/"+name)
	if err != nil {
		panic(err) // it is part of this program
	}
	return text
}

var vmRecipe = recipe{
	references: []string{VM},
	version:    vm.version(),
	seconds:    90,
	config: v1.Config{
		Entrypoint: []string{"/launch.py"}, Env: debianPath,
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/healthcheck.py"}, Interval: 5 * time.Second},
	},
	layers: vm.layers,
}
