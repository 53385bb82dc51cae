package plan

import (
	"encoding/json"
	"strings"
)

// ceosManagement reads the name of the management interface from an EosIntfMapping.json
// that the user mounts.
func ceosManagement(d *draft) {
	for _, m := range d.node.Mounts {
		if m.File == nil || !strings.Contains(m.Target+m.File.Origin, "EosIntfMapping.json") {
			continue
		}
		var mapping struct {
			ManagementIntf struct {
				Eth0 string `json:"eth0"`
			}
		}
		if err := json.Unmarshal(d.lab.Files[m.File.Digest], &mapping); err != nil {
			d.problems.Errorf(CodeKindData, m.Pos, "correct the JSON of the file", "node %q: %s: %v", d.node.Name, m.File.Origin, err)
			return
		}
		d.data.MgmtIntf = mapping.ManagementIntf.Eth0
	}
}

// ceosFlash copies the files that extras.ceos-copy-to-flash lists.
func ceosFlash(d *draft) {
	for _, f := range d.node.Extras.CEOSCopyToFlash {
		d.addFile(File{Path: "flash/" + f.Name, Mode: 0o644, Ref: &f.File, Secret: f.File.Secret})
	}
}
