#!/bin/sh
# Renders the demo lab into the folder $1 and shows what c9s made of it. Needs c9s
# in PATH, and nothing else.
set -eu
out=$1
topo=testdata/demo/demo.clab.yml
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$*"; }

say "The topology ($topo)"
cat "$topo"

say "Planner: c9s' own catalogue of kinds (--planner builtin)"
echo "The demo needs no more, and it is the quicker one to build. 'make build' also builds c9s-planner, which plans with"
echo "containerlab's own code where its module can be downloaded; c9s then uses it by default ('c9s version' says which)."

say "c9s render $topo -o $out"
c9s render "$topo" -o "$out" --planner builtin
say "What Kubernetes gets"
grep -h '^kind:' "$out"/*.yaml "$out"/nodes/*.yaml | sort | uniq -c
find "$out" -type f ! -name .c9s-manifest | sort

say "What runs for R1 (c9s plan $topo --node R1)"
c9s plan "$topo" --node R1 --planner builtin 2>/dev/null

say "The picture: $out/demo.html (also: c9s graph $topo)"
c9s graph "$topo" -o html >"$out/demo.html" 2>/dev/null
c9s graph "$topo" 2>/dev/null
