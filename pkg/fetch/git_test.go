package fetch

import "testing"

func TestParseRepo(t *testing.T) {
	tests := []struct {
		ref  string
		want Repo
		ok   bool
	}{
		{"https://github.com/srl-labs/srl-lab", Repo{URL: "https://github.com/srl-labs/srl-lab"}, true},
		{"https://github.com/srl-labs/srl-lab/tree/main/labs/one", Repo{URL: "https://github.com/srl-labs/srl-lab", Branch: "main", Path: "labs/one"}, true},
		{"https://github.com/srl-labs/srl-lab/blob/v1/lab.clab.yml", Repo{URL: "https://github.com/srl-labs/srl-lab", Branch: "v1", Path: "lab.clab.yml"}, true},
		{"https://gitlab.com/group/lab/-/tree/main/x", Repo{URL: "https://gitlab.com/group/lab", Branch: "main", Path: "x"}, true},
		{"https://git.example.org/team/lab.git", Repo{URL: "https://git.example.org/team/lab.git"}, true},
		{"srl-labs/srl-lab", Repo{URL: "https://github.com/srl-labs/srl-lab"}, true},
		{"labs/topo.clab.yml", Repo{}, false},
		{"https://example.org/lab.clab.yml", Repo{}, false},
		{"https://raw.githubusercontent.com/a/b/main/lab.clab.yml", Repo{}, false},
		{"./dir/sub", Repo{}, false},
		{"", Repo{}, false},
	}
	for _, tt := range tests {
		got, ok := ParseRepo(tt.ref)
		if got != tt.want || ok != tt.ok {
			t.Errorf("ParseRepo(%q) = %+v, %v, want %+v, %v", tt.ref, got, ok, tt.want, tt.ok)
		}
	}
}
