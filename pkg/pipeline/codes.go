package pipeline

import "github.com/c9s-lab/c9s/pkg/diag"

var (
	codeMapUnused = diag.Declare("map-image-unused", diag.Explanation{Stage: diag.StageImages,
		Text:   "a rule of --map-image applies to no image of the lab",
		Cause:  "FROM is not written as in the topology, or an earlier rule applies to the same images.",
		Remedy: "Write FROM as the topology does; a * at its end stands for the rest."})
	codeForeignImage = diag.Declare("policy-image-ignored", diag.Explanation{Stage: diag.StageImages,
		Text:   "the policy of a fetched topology names a c9s image",
		Cause:  "The c9s image runs privileged and with the keys of the lab, so the author of a topology cannot choose it.",
		Remedy: "Use --image if you trust the image."})
	codeForeignFiles = diag.Declare("policy-files-ignored", diag.Explanation{Stage: diag.StagePolicy,
		Text:   "a fetched topology mounts Secrets or ConfigMaps of the namespace",
		Cause:  "The namespace may hold Secrets that the author of a topology must not see.",
		Remedy: "Write the files in a policy of your own and name it with --policy, or use --trust if you trust the topology."})
	codeImage = diag.Declare("image-unresolved", diag.Explanation{Stage: diag.StageImages,
		Text:   "a registry does not have an image, or does not answer (--resolve-images, --pin)",
		Cause:  "The reference is misspelt, the registry requires a login, or it is unreachable.",
		Remedy: "Correct the image, log in to its registry, or map it with --map-image."})
	codePin = diag.Declare("image-pin", diag.Explanation{Stage: diag.StageImages,
		Text:   "an image reference cannot be pinned to its digest (--pin)",
		Cause:  "The reference cannot take a digest.",
		Remedy: "Correct the image."})
)
