package render

import "strings"

// ImageRule rewrites an image reference. From is one of
//
//   - a whole reference ("ghcr.io/nokia/srlinux:24.10"): replaced by To;
//   - a name without tag and digest ("ghcr.io/nokia/srlinux"): replaced by To,
//     which takes over the tag or digest unless it has its own;
//   - a prefix and "*" ("ghcr.io/*"): a "*" in To stands for what the "*" met.
type ImageRule struct {
	From, To string
}

// MapImage applies the first rule that matches image.
func MapImage(rules []ImageRule, image string) string {
	for _, r := range rules {
		if to, ok := r.apply(image); ok {
			return to
		}
	}
	return image
}

// UnusedRules are the rules that come to bear on none of images.
func UnusedRules(rules []ImageRule, images []string) []ImageRule {
	used := make([]bool, len(rules))
	for _, image := range images {
		for i, r := range rules {
			if _, ok := r.apply(image); ok {
				used[i] = true
				break
			}
		}
	}
	var out []ImageRule
	for i, r := range rules {
		if !used[i] {
			out = append(out, r)
		}
	}
	return out
}

func (r ImageRule) apply(image string) (string, bool) {
	if r.From == "" {
		return "", false
	}
	if r.From == image {
		return r.To, true
	}
	if prefix, ok := strings.CutSuffix(r.From, "*"); ok {
		rest, met := strings.CutPrefix(image, prefix)
		return strings.Replace(r.To, "*", rest, 1), met
	}
	name, suffix := splitImage(image)
	if r.From != name {
		return "", false
	}
	if _, own := splitImage(r.To); own != "" {
		return r.To, true
	}
	return r.To + suffix, true
}

// splitImage parts a reference into its name and ":tag", "@digest" or both. A
// colon before the last slash belongs to a registry's port.
func splitImage(image string) (name, suffix string) {
	name, digest, hasDigest := strings.Cut(image, "@")
	if hasDigest {
		suffix = "@" + digest
	}
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		suffix = name[i:] + suffix
		name = name[:i]
	}
	return name, suffix
}
