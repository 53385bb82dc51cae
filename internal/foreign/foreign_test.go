package foreign

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	endless := &counted{}
	if data, err := Read(endless, 10); err == nil || len(data) > 0 || endless.read > 4<<10 {
		t.Errorf("an endless answer: %d bytes, %v, after %d bytes read", len(data), err, endless.read)
	}
	for size, good := range map[int]bool{0: true, 9: true, 10: true, 11: false, 1000: false} {
		data, err := Read(strings.NewReader(strings.Repeat("x", size)), 10)
		if (err == nil) != good || good && len(data) != size {
			t.Errorf("%d bytes: %d, %v", size, len(data), err)
		}
	}
}

// counted gives bytes without end, up to 64 MiB, and counts them.
type counted struct{ read int }

func (c *counted) Read(p []byte) (int, error) {
	if c.read += len(p); c.read > 64<<20 {
		return 0, io.EOF
	}
	return len(p), nil
}

// A list of many small elements would take a hundred times the memory of its text.
func TestJSON(t *testing.T) {
	type big struct {
		A [64]uint64
	}
	for text, good := range map[string]bool{
		`[{},{},{}]`:                         true,
		`[{},{},{},{}]`:                      false,
		`[0,0,0,0,0]`:                        false,
		`[[],[],[]]`:                         false, // four lists
		`[{"A":[]},{"A":[]}]`:                false,
		`["a,b,c,d,e,[[[[","]"]`:             false, // no big
		`{"a":{"b":1,"c":2,"d":3,"e":4}}`:    false,
		` [ { } , { } ] `:                    true,
		`[`:                                  false,
		`[{"\",\",\",\",\",":1},{"[[[[":2}]`: true,
	} {
		var v []big
		if err := JSON([]byte(text), 3, &v); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What JSON decodes is what encoding/json decodes, and no list has more elements than
// it may.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2,{"b":["x","\"],["]}]}`, `[[],[[]]]`, `]`, `"\u005b"`, `[1,`, `{"a":1}`} {
		f.Add([]byte(seed))
	}
	const most = 8
	f.Fuzz(func(t *testing.T, data []byte) {
		var v, want any
		err := JSON(data, most, &v)
		if err != nil {
			return
		}
		if err := json.Unmarshal(data, &want); err != nil || !reflect.DeepEqual(v, want) {
			t.Errorf("%q: %v, want %v, %v", data, v, want, err)
		}
		if n := count(v); n > most {
			t.Errorf("%q has %d elements", data, n)
		}
	})
}

// count counts the elements of all lists in a value.
func count(v any) int {
	n := 0
	switch v := v.(type) {
	case []any:
		n = len(v)
		for _, e := range v {
			n += count(e)
		}
	case map[string]any:
		for _, e := range v {
			n += count(e)
		}
	}
	return n
}

type body struct {
	*strings.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func TestNoRedirect(t *testing.T) {
	for code, good := range map[int]bool{200: true, 101: true, 304: true, 404: true, 301: false, 302: false, 303: false, 307: false, 308: false, 300: false} {
		b := &body{Reader: strings.NewReader("")}
		err := NoRedirect(&http.Response{StatusCode: code, Body: b})
		if (err == nil) != good || b.closed == good || err != nil && !errors.Is(err, ErrRedirect) {
			t.Errorf("%d: %v, closed: %t", code, err, b.closed)
		}
	}
}
