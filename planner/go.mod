module github.com/c9s-lab/c9s/planner

go 1.26.0

require (
	github.com/c9s-lab/c9s v0.0.0-00010101000000-000000000000
	github.com/srl-labs/containerlab v0.79.0
)

replace github.com/c9s-lab/c9s => ../
