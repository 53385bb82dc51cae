package measure

import (
	"io"
	"net/netip"
	"os"
	"strings"
)

// maxHosts is the most of a hosts file that is read, in bytes.
const maxHosts = 4 << 20

// hostsFile reads the addresses of the names in a hosts file.
func hostsFile(path string) map[string][]netip.Addr {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxHosts))
	if err != nil {
		return nil
	}
	out := map[string][]netip.Addr{}
	for line := range strings.Lines(string(data)) {
		text, _, _ := strings.Cut(line, "#")
		words := strings.Fields(text)
		if len(words) < 2 {
			continue
		}
		a, err := netip.ParseAddr(words[0])
		if err != nil {
			continue
		}
		for _, name := range words[1:] {
			out[name] = append(out[name], a.Unmap())
		}
	}
	return out
}
