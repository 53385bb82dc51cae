package render

import (
	"io"
)

// Format is how a stream of objects is written.
type Format string

const (
	// YAML is one document an object, with the source line as a comment.
	YAML Format = "yaml"
	// JSON is one v1 List.
	JSON Format = "json"
)

// WriteStream writes objs in their order.
func WriteStream(w io.Writer, objs []Object, format Format) error { return nil }
