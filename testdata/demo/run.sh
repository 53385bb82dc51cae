#!/bin/sh
# Runs the demo lab: $1 is "here" (a Kubernetes cluster on this machine, started if there is
# none), "kind" (a cluster of kind's), "k3s" (that of this machine) or "current" (the cluster of
# the current kubectl context, whose workers must be able to pull the c9s image $2). Each step
# finds what an earlier, interrupted run left, so starting it again goes on from there.
set -eu
where=$1
topo=testdata/demo/demo.clab.yml
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$*"; }

has() { command -v "$1" >/dev/null 2>&1; }
# offer prints how the demo runs in a cluster that is there already.
offer() {
	if has kind && has docker && docker info >/dev/null 2>&1; then
		echo "Docker and kind are here: 'make demo CLUSTER=kind' runs the lab in a cluster of kind's."
	fi
	if has k3s; then
		echo "k3s is here: 'make demo CLUSTER=k3s' runs the lab in it (as root)."
	fi
}
# The tag is the source's, so that workers never take an old image for it.
source_image() {
	echo ghcr.io/c9s-lab/c9s:"$(go list -deps -f '{{if .Module}}{{if .Module.Main}}{{range .GoFiles}}{{$.Dir}}/{{.}}
{{end}}{{end}}{{end}}' ./cmd/c9s-sidecar ./cmd/c9s-controller | xargs cat | sha256sum | cut -c1-12)"
}
# archive builds the c9s image into bin/image.tar.
archive() {
	say "The c9s image (c9s image build)"
	image=$(source_image)
	mkdir -p bin
	c9s image build "$image" --platform "linux/$(go env GOARCH)" -o bin/image.tar
}

case $where in
current)
	image=${2:-}
	;;
kind)
	has kind && has docker || {
		echo "CLUSTER=kind needs kind (https://kind.sigs.k8s.io) and Docker" >&2
		exit 1
	}
	say "A cluster of kind's (kind create cluster --name c9s)"
	# A file of its own: kind would change the current context of the user's kubeconfig.
	mkdir -p bin
	KUBECONFIG=$PWD/bin/kind.kubeconfig
	export KUBECONFIG
	kind get clusters 2>/dev/null | grep -qx c9s || (umask 077 && kind create cluster --name c9s --wait 2m)
	(umask 077 && kind get kubeconfig --name c9s >"$KUBECONFIG.new" && mv "$KUBECONFIG.new" "$KUBECONFIG")
	archive
	kind load image-archive bin/image.tar --name c9s
	;;
k3s)
	has k3s || {
		echo "CLUSTER=k3s needs k3s (https://k3s.io)" >&2
		exit 1
	}
	KUBECONFIG=${K3S_KUBECONFIG:-/etc/rancher/k3s/k3s.yaml}
	[ -r "$KUBECONFIG" ] || {
		echo "CLUSTER=k3s: cannot read $KUBECONFIG; start k3s, and run this as root" >&2
		exit 1
	}
	export KUBECONFIG
	archive
	k3s ctr images import bin/image.tar
	;;
here)
	if [ "$(id -u)" != 0 ]; then
		say "To run it"
		echo "As root, 'make demo' would now start a Kubernetes cluster on this machine and run the lab in it."
		echo "With a cluster of your own: make demo CLUSTER=current IMAGE=<a c9s image that it can pull>"
		echo "('c9s image push REFERENCE' makes and pushes one)."
		offer
		exit 0
	fi
	say "A Kubernetes cluster on this machine (make cluster)"
	echo "Three workers without Docker. The first time its programs are built from source, about 10 minutes on two cores;"
	echo "after that it takes seconds. 'make cluster-down' removes it and leaves the machine as it was."
	offer
	$MAKE --no-print-directory cluster
	KUBECONFIG=$($MAKE --no-print-directory -s cluster-kubeconfig)
	export KUBECONFIG

	say "Images: c9s' own (c9s image build), and stand-ins for those of the lab"
	image=$(source_image)
	mkdir -p bin
	c9s image build "$image" --platform "linux/$(go env GOARCH)" -o bin/image
	bin/c9s-cluster load linux frr "bin/image=$image"
	;;
*)
	echo "CLUSTER=$where: use here, kind, k3s or current" >&2
	exit 2
	;;
esac

say "c9s deploy $topo"
c9s deploy "$topo" --planner builtin --yes ${image:+--image "$image"}

say "c9s status"
c9s status "$topo" -o wide

say "c9s test: every link at its MTU, OSPF, PC1 to PC2, and the time without an answer when a link fails"
c9s test testdata/demo/demo.test.yaml --topo "$topo"

say "c9s run: the link R1-R2 goes down, OSPF moves to R3, and a capture of both ends of R1-R3 has its packets"
mkdir -p demo
c9s capture --link R1 R3 --topo "$topo" --filter ospf -w demo/ospf.pcapng --for 17s &
c9s run testdata/demo/failover.yaml --topo "$topo"
wait $!

say "Next"
[ "$where" = current ] || echo "export KUBECONFIG=$KUBECONFIG"
cat <<'END'
bin/c9s shell R1                                  # then: vtysh
bin/c9s exec R1 -- vtysh -c 'show ip route ospf'
bin/c9s status demo -w
bin/c9s test testdata/demo/demo.test.yaml -t testdata/demo/demo.clab.yml
bin/c9s link down R1:eth1 --for 30s
bin/c9s capture R1:eth1
bin/c9s destroy demo
END
case $where in
here) echo "make cluster-down                                 # the cluster itself" ;;
kind) echo "kind delete cluster --name c9s                    # the cluster itself" ;;
esac
