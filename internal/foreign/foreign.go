// Package foreign reads what others wrote: Pods, devices, whoever may write objects of
// a namespace. Nothing that it reads takes more memory than its caller allows.
package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Limits of what c9s reads. Each is several times what the largest lab needs.
const (
	// MaxStatus bounds a sidecar's status, and MaxLab the controller's status of a
	// whole lab, in bytes, unpacked.
	MaxStatus = 4 << 20
	MaxLab    = 32 << 20
	// MaxElements bounds the elements of all lists in a sidecar's status or in a part of
	// the directory, MaxLabElements in the status of a whole lab. An element of two bytes
	// of text may take hundreds of bytes of memory.
	MaxElements    = 20_000
	MaxLabElements = 300_000
)

// Read reads all of r, which must not be longer than limit bytes.
func Read(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, nil
}

// JSON decodes data into v, as json.Unmarshal does, unless its lists have more than
// elements elements in all.
func JSON(data []byte, elements int, v any) error {
	if n := listElements(data); n > elements {
		return fmt.Errorf("its lists have %d elements, more than %d", n, elements)
	}
	return json.Unmarshal(data, v)
}

// listElements counts the elements of all lists of a JSON text, or somewhat more.
func listElements(data []byte) int {
	var n int
	var open []byte // brackets
	inString := false
	for i := 0; i < len(data); i++ {
		b := data[i]
		switch {
		case inString && b == '\\':
			i++
		case b == '"':
			inString = !inString
		case inString:
		case b == '[' || b == '{':
			open = append(open, b)
			if b == '[' {
				n++
			}
		case (b == ']' || b == '}') && len(open) > 0:
			open = open[:len(open)-1]
		case b == ',' && len(open) > 0 && open[len(open)-1] == '[':
			n++
		}
	}
	return n
}

// ErrRedirect is the error of an answer that points somewhere else.
var ErrRedirect = errors.New("the answer is a redirect, which c9s never follows")

// NoRedirect closes a response that is a redirect and returns ErrRedirect.
func NoRedirect(resp *http.Response) error {
	if resp.StatusCode < 300 || resp.StatusCode > 399 || resp.StatusCode == http.StatusNotModified {
		return nil
	}
	resp.Body.Close()
	return ErrRedirect
}
