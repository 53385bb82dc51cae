package render

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Limits on the JSON form of an object's data, in bytes. kubectl's client-side
// apply writes the whole object into an annotation, and all annotations together
// may have 256 KiB; the API server takes 1 MiB.
const (
	smallObject = 230_000
	largeObject = 900_000
)

// maxKey leaves room for ".part-000000" in the 253 characters of a data key.
const maxKey = 200

// sharedSize is from which size on, in bytes, a file is in ConfigMaps of its own, which all
// Pods with the same file share. It must not depend on how many Pods have the file: then a
// new node would restart another.
const sharedSize = 32 << 10

// sharedFile begins the names of such ConfigMaps and of the keys in them.
const sharedFile = "c9s-file-"

// packer puts files into as few bins as fit, in order, one bin an object. Equal
// contents are kept once.
type packer struct {
	bins []*bin
	// shared are the bins of large files, one a piece.
	shared []*bin
	// keys are the data keys in use in the whole Pod.
	keys map[string]bool
	// known are the chunks of contents that are packed already, by SHA-256.
	known map[[sha256.Size]byte][]string
}

// bin is the data of one ConfigMap or Secret.
type bin struct {
	size   int
	text   map[string]string
	binary map[string][]byte
}

func newPacker(keys map[string]bool) *packer {
	return &packer{keys: keys, known: map[[sha256.Size]byte][]string{}}
}

// put packs data, whose SHA-256 is sum, under keys made of name and returns them
// in order; none for an empty file. asBytes is for Secrets, whose data is always
// in base64.
func (p *packer) put(name string, data []byte, sum [sha256.Size]byte, asBytes bool) []string {
	if len(data) == 0 {
		return nil
	}
	if chunks, ok := p.known[sum]; ok {
		return chunks
	}
	text := !asBytes && isText(data)
	pieces := split(data, text)
	if !asBytes && len(data) >= sharedSize {
		chunks := p.share(pieces, text)
		p.known[sum] = chunks
		return chunks
	}
	key := p.key(name)
	chunks := make([]string, len(pieces))
	for i, piece := range pieces {
		chunks[i] = key
		if len(pieces) > 1 {
			chunks[i] = fmt.Sprintf("%s.part-%03d", key, i)
		}
		p.add(chunks[i], piece, text)
	}
	p.known[sum] = chunks
	return chunks
}

// share gives each piece of a large file a bin of its own. Its key depends on the contents
// only.
func (p *packer) share(pieces [][]byte, text bool) []string {
	chunks := make([]string, len(pieces))
	for i, piece := range pieces {
		chunks[i] = sharedFile + contract.ShortDigest(string(piece))
		if p.keys[chunks[i]] {
			continue // two pieces of the same bytes
		}
		p.keys[chunks[i]] = true
		b := &bin{}
		b.put(chunks[i], piece, text)
		p.shared = append(p.shared, b)
	}
	return chunks
}

// whole packs text under key in one piece, however long it is, and returns its bin.
func (p *packer) whole(key, text string) *bin {
	p.add(key, []byte(text), true)
	return p.bins[len(p.bins)-1]
}

// key makes a data key of a path: "config/startup.cfg" is "config_startup.cfg".
func (p *packer) key(name string) string {
	key := contract.Fit(strings.TrimLeft(contract.Legal(name, '_'), "."), maxKey)
	if key == "" || p.keys[key] || strings.HasPrefix(key, sharedFile) {
		key = contract.Fit(key+"-"+contract.ShortDigest(name)[:6], maxKey)
	}
	for base, i := key, 2; p.keys[key]; i++ {
		key = base + "-" + strconv.Itoa(i)
	}
	p.keys[key] = true
	return key
}

func (p *packer) add(key string, piece []byte, text bool) {
	size := cost(piece, text) + len(key) + 6
	if len(p.bins) == 0 || p.bins[len(p.bins)-1].size+size > smallObject {
		p.bins = append(p.bins, &bin{})
	}
	b := p.bins[len(p.bins)-1]
	b.size += size
	b.put(key, piece, text)
}

func (b *bin) put(key string, piece []byte, text bool) {
	if text {
		if b.text == nil {
			b.text = map[string]string{}
		}
		b.text[key] = string(piece)
		return
	}
	if b.binary == nil {
		b.binary = map[string][]byte{}
	}
	b.binary[key] = piece
}

// digest names the bin by its contents.
func (b *bin) digest() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(b.text)) {
		parts = append(parts, key, b.text[key])
	}
	for _, key := range slices.Sorted(maps.Keys(b.binary)) {
		parts = append(parts, key, string(b.binary[key]))
	}
	return contract.ShortDigest(parts...)
}

// bytes is the data in a Secret's form.
func (b *bin) bytes() map[string][]byte { return b.binary }

// split cuts data into pieces that fit one object each; text is cut after a line
// where one ends in the second half of the piece, and never inside a character.
func split(data []byte, text bool) [][]byte {
	const budget = smallObject - 1000
	if cost(data, text) <= budget {
		return [][]byte{data}
	}
	var pieces [][]byte
	for len(data) > 0 {
		n := min(len(data), budget/4*3)
		if text {
			n = textPrefix(data, budget)
		}
		pieces = append(pieces, data[:n])
		data = data[n:]
	}
	return pieces
}

func textPrefix(data []byte, budget int) int {
	size, n, line := 2, 0, 0
	for n < len(data) {
		r, width := utf8.DecodeRune(data[n:])
		size += runeCost(r, width)
		if size > budget {
			break
		}
		n += width
		if r == '\n' {
			line = n
		}
	}
	if n < len(data) && line > n/2 {
		return line
	}
	return n
}

// isText reports whether data can be a ConfigMap's text: UTF-8 without control
// characters other than tab and line ends.
func isText(data []byte) bool {
	for _, c := range data {
		if c < 0x20 && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(data)
}

// cost is the size of data as a JSON string.
func cost(data []byte, text bool) int {
	if !text {
		return base64.StdEncoding.EncodedLen(len(data)) + 2
	}
	return jsonCost(string(data))
}

// jsonCost is the length of s as a JSON string in the most wasteful usual form,
// which escapes what HTML would.
func jsonCost(s string) int {
	size := 2
	for _, r := range s {
		size += runeCost(r, utf8.RuneLen(r))
	}
	return size
}

func runeCost(r rune, width int) int {
	switch r {
	case '"', '\\', '\n', '\t', '\r':
		return 2
	case '<', '>', '&', 0x2028, 0x2029:
		return 6
	}
	if r < 0x20 {
		return 6
	}
	return width
}
