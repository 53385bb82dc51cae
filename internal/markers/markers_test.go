package markers

import "testing"

func TestSet(t *testing.T) {
	const block = "# BEGIN b\nx\n# END b\n"
	for name, c := range map[string]struct {
		text, body string
		first      bool
		want       string
	}{
		"into an empty file":       {"", "x", false, block},
		"at the end":               {"a\n", "x\n", false, "a\n" + block},
		"after an unfinished line": {"a", "x", false, "a\n" + block},
		"at the beginning":         {"a\n", "x", true, block + "a\n"},
		"in its place":             {"a\n# BEGIN b\nold\n# END b\nc\n", "x", true, "a\n" + block + "c\n"},
		"at the very end":          {"a\n# BEGIN b\nold\n# END b", "x", false, "a\n" + block},
		"the same again":           {"a\n" + block + "c\n", "x", true, "a\n" + block + "c\n"},
		"removed":                  {"a\n" + block + "c\n", "", false, "a\nc\n"},
		"removed, not there":       {"a\n", "", false, "a\n"},
		"another's":                {"# BEGIN bb\ny\n# END bb\n", "x", false, "# BEGIN bb\ny\n# END bb\n" + block},
		"without its end":          {"# BEGIN b\nmine\n", "x", false, "mine\n" + block},
		"named inside a line":      {"see # BEGIN b\n# END b\n", "", false, "see # BEGIN b\n# END b\n"},
	} {
		if got := Set(c.text, "b", c.body, c.first); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func FuzzSet(f *testing.F) {
	f.Add("a\n# BEGIN b\nx\n# END b\nc\n", true)
	f.Add("a", false)
	f.Fuzz(func(t *testing.T, text string, first bool) {
		once := Set(text, "b", "x", first)
		if again := Set(once, "b", "x", first); again != once {
			t.Errorf("%q became %q, then %q", text, once, again)
		}
	})
}
