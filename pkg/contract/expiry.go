package contract

import "time"

// A lab that expires has the ConfigMap ExpiryConfigMap, which owns all its other objects: who
// deletes it deletes the lab. The controller may do that, and may delete nothing else.
const (
	ExpiryConfigMap = "c9s-expiry"
	// AnnotationExpires, on it, is the time in RFC 3339. Listing metadata is enough
	// to read it.
	AnnotationExpires = "c9s.dev/expires"
	// ExpiryEnv is set for the controller of a lab that expires.
	ExpiryEnv = "C9S_EXPIRES"
	// AnnotationOwner, on the directory, is the user who deployed the lab.
	AnnotationOwner = "c9s.dev/owner"
)

// FormatExpiry writes the time at which a lab expires.
func FormatExpiry(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// ParseExpiry reads it. What is no time is the zero value: such a lab does not expire.
func ParseExpiry(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}
