package hooks

import (
	"slices"
	"strings"

	clabcore "github.com/srl-labs/containerlab/core"
)

// Kinds are the registered kind names, a line for each name.
func Kinds() []string {
	c, err := clabcore.NewContainerLab()
	if err != nil || c.Reg == nil {
		return nil
	}
	names := c.Reg.GetRegisteredNodeKindNames()
	slices.SortFunc(names, strings.Compare)
	return names
}
