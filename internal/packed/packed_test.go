package packed

import (
	"bytes"
	"strings"
	"testing"
)

func TestPack(t *testing.T) {
	text := []byte(strings.Repeat("a node of the lab\n", 10_000))
	data := Pack(text)
	if len(data) > len(text)/50 || !bytes.Equal(data, Pack(text)) {
		t.Errorf("%d bytes are %d when packed, and not the same each time", len(text), len(data))
	}
	for _, c := range []struct {
		name   string
		plain  map[string]string
		packed map[string][]byte
		want   []byte
		err    string
	}{
		{name: "none"},
		{name: "plain", plain: map[string]string{"x": "text"}, want: []byte("text")},
		{name: "packed", packed: map[string][]byte{"x.gz": data}, want: text},
		{name: "packed comes first", plain: map[string]string{"x": "old"}, packed: map[string][]byte{"x.gz": data}, want: text},
		{name: "not gzip", packed: map[string][]byte{"x.gz": []byte("not gzip at all")}, err: "x.gz: gzip: invalid header"},
		{name: "too large", packed: map[string][]byte{"x.gz": Pack(make([]byte, 1<<20))}, err: "x.gz: it is larger than 200000 bytes"},
	} {
		got, err := Text(c.plain, c.packed, "x", 200_000)
		if !bytes.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %d bytes, %v", c.name, len(got), err)
		}
	}
}
