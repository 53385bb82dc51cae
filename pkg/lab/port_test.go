package lab

import (
	"fmt"
	"strings"
	"testing"
)

func TestParsePort(t *testing.T) {
	tests := map[string]string{
		"80":                       "80/TCP",
		"8080:80":                  "8080:80/TCP",
		"127.0.0.1:8080:80":        "8080:80/TCP",
		"[::1]:8080:80/udp":        "8080:80/UDP",
		"127.0.0.1::80":            "80/TCP",
		"5000-5002":                "5000/TCP 5001/TCP 5002/TCP",
		"6000-6001:5000-5001/sctp": "6000:5000/SCTP 6001:5001/SCTP",
	}
	for in, want := range tests {
		ports, err := ParsePort(in)
		var got []string
		for _, p := range ports {
			text := fmt.Sprintf("%d/%s", p.Container, p.Protocol)
			if p.Host != 0 {
				text = fmt.Sprintf("%d:%s", p.Host, text)
			}
			got = append(got, text)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("ParsePort(%q) = %v, %v, want %s", in, got, err, want)
		}
	}
}

func FuzzParsePort(f *testing.F) {
	for _, seed := range []string{"80", "8080:80", "[::1]:1:2/udp", "1-3:4-6", "a", "::", "1:2:3:4", "[", "]:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ports, err := ParsePort(text)
		if (err == nil) != (len(ports) > 0) {
			t.Errorf("ParsePort(%q) = %v, %v", text, ports, err)
		}
		for _, p := range ports {
			if p.Container == 0 {
				t.Errorf("ParsePort(%q) gives port 0", text)
			}
		}
	})
}
