package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// TestCodesAreExplained holds every code to its form: a name in kebab case, a clause
// for what is wrong, and whole sentences for cause and remedy.
func TestCodesAreExplained(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	all := diag.Explanations()
	if len(all) < 100 {
		t.Errorf("%d codes are declared", len(all))
	}
	for _, e := range all {
		if !name.MatchString(string(e.Code)) || strings.HasSuffix(e.Text, ".") || !strings.HasSuffix(e.Cause, ".") || !strings.HasSuffix(e.Remedy, ".") {
			t.Errorf("%+v", e)
		}
		if e.Text[:1] != strings.ToLower(e.Text[:1]) && !strings.HasPrefix(e.Text, "API") {
			t.Errorf("%s: %q begins with a capital letter", e.Code, e.Text)
		}
	}
}

func TestExplainCode(t *testing.T) {
	stdout, stderr, code := run(t, "explain", "image-missing")
	if code != ExitOK || !strings.Contains(stdout, "CODE:   image-missing\n") || !strings.Contains(stdout, "REMEDY: Set image on the node") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	_, stderr, code = run(t, "explain", "image-mising")
	if code != ExitFailure || !strings.Contains(stderr, `did you mean "image-missing"?`) {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}
