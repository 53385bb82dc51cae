package fetch

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzRedact holds that no password of a URL is left.
func FuzzRedact(f *testing.F) {
	f.Add("sekret")
	f.Add("p@/?#")
	f.Fuzz(func(t *testing.T, password string) {
		u := url.URL{Scheme: "https", User: url.UserPassword("user", password), Host: "host", Path: "/x"}
		if got, want := Redact("get "+u.String()+" now"), "get https://…@host/x now"; got != want {
			t.Errorf("Redact(%q) = %q, want %q", u.String(), got, want)
		}
	})
}

// FuzzParseRepo holds that git gets no option and no other protocol from a reference.
func FuzzParseRepo(f *testing.F) {
	f.Add("https://github.com/a/b/tree/main/x")
	f.Add("ext::sh -c x.git")
	f.Add("a/--upload-pack=x")
	f.Fuzz(func(t *testing.T, ref string) {
		r, ok := ParseRepo(ref)
		if !ok {
			return
		}
		u, err := url.Parse(r.URL)
		if err != nil || !strings.Contains("https http ssh git file", u.Scheme) || strings.HasPrefix(r.URL, "-") || strings.HasPrefix(r.Branch, "-") {
			t.Errorf("%q is %+v", ref, r)
		}
	})
}
