package pipeline

import "github.com/c9s-lab/c9s/pkg/diag"

var (
	codeMapUnused = diag.Declare("map-image-unused", diag.Explanation{Stage: diag.StageImages,
		Text:   "a rule of --map-image applies to no image of the lab",
		Cause:  "FROM is not written as in the topology, or an earlier rule applies to the same images.",
		Remedy: "Write FROM as the topology does; a * at its end stands for the rest."})
)
