package compile

import (
	"strings"
	"unicode"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// maxName is the longest name that DNS and /etc/hosts carry (RFC 1035).
const maxName = 253

// useLetters is the hint for a name that containers and hosts cannot have.
const useLetters = "use letters, digits, hyphens, dots and underscores"

// notInName reports whether a container's name cannot have r (Docker:
// [a-zA-Z0-9][a-zA-Z0-9_.-]+). Names of nodes and labs, prefixes, hostnames and
// aliases end in /etc/hosts, in labels and in command lines, where every other
// character may mean something.
func notInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-", r))
}

// isName reports whether text is a name as containers have them.
func isName(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, notInName) && !strings.ContainsRune(".-", rune(text[0]))
}

// isBridgeName reports whether text is a name as Linux bridges have them, or one with
// the namespace of the bridge after a bar.
func isBridgeName(text string) bool {
	return text != "" && len(text) <= maxName && isWord(text) && !strings.ContainsAny(text, "/:") && !strings.ContainsRune(".-", rune(text[0]))
}

// isWord reports whether text is printable ASCII without a space.
func isWord(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// isPrintable reports whether text is displayed as it is: without control characters,
// invisible characters, and characters that change the direction of writing.
func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r)
	})
}

// name checks a name that ends in /etc/hosts. An empty text is the absence of one.
func (c *compiler) name(text string, pos diag.Pos, what string) bool {
	if text == "" || isName(text) {
		return true
	}
	c.diags.Errorf(CodeBadName, pos, useLetters, "%q is not valid as %s", text, what)
	return false
}
