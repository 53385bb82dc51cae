package hooks

import "testing"

func TestInOrder(t *testing.T) {
	for message, want := range map[string]string{
		"it failed": "it failed",
		`wrong node type. "foo" should be any of ixr-10, ixr6, a.`: `wrong node type. "foo" should be any of a, ixr-10, ixr6.`,
		"any of b": "any of b",
	} {
		if got := inOrder(message); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
