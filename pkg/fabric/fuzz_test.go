package fabric

import "testing"

// FuzzLoad: a file is either loaded or has an error, whatever is in it.
func FuzzLoad(f *testing.F) {
	for _, protocols := range []string{overOSPF, overISIS, overEBGP, unnumbered} {
		f.Add(pools + protocols + vteps + services + "prefer: {leaf1: {loopback: 10.0.0.9, asn: 7}}\nmerge: true\n")
	}
	f.Add("pools: {a: {addresses: [0.0.0.0/0], order: hash}, b: {prefixes: [10.0.0.0/8], length: 8}, c: {numbers: [1, 4294967294]}}\nservices: [null]")
	f.Fuzz(func(t *testing.T, text string) {
		fabric, diags := Load("fabric.yaml", []byte(text))
		failed := false
		for _, d := range diags {
			failed = failed || d.Severity == "error"
		}
		if (fabric == nil) != failed {
			t.Errorf("fabric %v, %v", fabric, diags)
		}
	})
}
