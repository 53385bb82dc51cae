package strictyaml

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/c9s-lab/c9s/pkg/diag"
)

func TestNearest(t *testing.T) {
	known := []string{"mgmt-ipv4", "mgmt-ipv6", "binds", "image", "startup-config"}
	for word, want := range map[string]string{"mgmt_ipv4": "mgmt-ipv4", "bind": "binds", "imgae": "image", "startup_config": "startup-config", "zzz": "", "": ""} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

// TestDecode decodes types with yaml tags, with json tags and with their own JSON form,
// and collects every problem with its position.
func TestDecode(t *testing.T) {
	type inner struct {
		Size  resource.Quantity `json:"size"`
		Count *int              `json:"count"`
	}
	type Inline struct {
		On bool `json:"on"`
	}
	type file struct {
		Name   string           `yaml:"name"`
		Ratio  float64          `yaml:"ratio"`
		List   []inner          `yaml:"list"`
		Map    map[string]inner `yaml:"map"`
		Inline `json:",inline"`
	}
	for text, want := range map[string]string{
		"name: a\nratio: 1.5\non: true\nlist: [{size: 1Gi, count: 2}]\nmap: {x: {count: 3}}": "",
		"name: 1\nratio: x\non: 1":    `1:7 name must be text, not the number 1 / 2:8 ratio must be a number, not the text "x" / 3:5 on must be true or false, not the number 1`,
		"nam: a\nname: b\nname: c":    `1:1 unknown key "nam" here / 3:1 key "name" occurs twice (first at line 2)`,
		"list: {}\nmap: []":           "1:7 list must be a list, not a mapping / 2:6 map must be a mapping, not a list",
		"list: [{size: big}]":         "1:15 size: quantities must match",
		"base: &b {on: true}\n<<: *b": `1:1 unknown key "base" here`,
	} {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		var to file
		d := Decoder{Diags: &diag.List{}, Codes: Codes{"t", "t", "t", "t", "t"}, Top: "here"}
		d.Decode(doc.Content[0], &to, "")
		var got []string
		for _, p := range d.Diags.All() {
			got = append(got, strings.TrimPrefix(p.Pos.String(), ":")+" "+p.Message)
		}
		if all := strings.Join(got, " / "); !strings.HasPrefix(all, want) || want == "" && all != "" {
			t.Errorf("%s\n got %s\nwant %s", text, all, want)
		}
		if want == "" && (to.Name != "a" || to.Ratio != 1.5 || !to.On || to.List[0].Size.String() != "1Gi" || *to.List[0].Count != 2 || *to.Map["x"].Count != 3) {
			t.Errorf("%+v", to)
		}
	}
}
