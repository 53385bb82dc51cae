package fetch

import "regexp"

var (
	userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/?#\s"']*@`)
	// secretParameter are query parameters that are passwords by another name.
	secretParameter = regexp.MustCompile(`(?i)([?&][a-z0-9_.-]*(?:token|secret|passw(?:or)?d|key|signature|sig|auth|credential|code)[a-z0-9_.-]*=)[^&#\s"']+`)
)

// Redact returns a text with the user names, passwords and tokens of the URLs in it left
// out. A user name goes too, for it is often a token.
func Redact(text string) string {
	return secretParameter.ReplaceAllString(userinfo.ReplaceAllString(text, "${1}…@"), "${1}…")
}

// redacted is an error whose text names no passwords.
type redacted struct{ error }

func (r redacted) Error() string { return Redact(r.error.Error()) }

func (r redacted) Unwrap() error { return r.error }
