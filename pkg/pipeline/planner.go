package pipeline

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// PlannerNotice says which planner works without c9s-planner.
const PlannerNotice = "planner: built-in catalogue (containerlab " + kinds.ContainerlabVersion + "); install c9s-planner to use containerlab's hooks"

// ChosenPlanner is a planner with the reason for choosing it.
type ChosenPlanner struct {
	plan.Planner
	// Notice, if not empty, says why the hooks are not used. Loud is set if the user
	// should know it in any case.
	Notice string
	Loud   bool
}

// ChoosePlanner returns the planner "builtin", "hooks" or "auto". program is the planner
// program for hooks, "" for the one that is found.
func ChoosePlanner(name, program string, cat *kinds.Catalogue) (ChosenPlanner, error) {
	builtin := plan.NewBuiltin(cat, plan.WithTemplateFuncs(topology.TemplateFuncs()))
	if name == "builtin" {
		return ChosenPlanner{Planner: builtin}, nil
	}
	hooks, err := plan.FindHooks(program)
	found := err == nil
	if found {
		auto := plan.NewAuto(hooks, builtin, cacheDir("plans"))
		if _, err = hooks.Hello(); err == nil {
			return ChosenPlanner{Planner: auto}, nil
		}
	}
	switch {
	case name == "hooks" || program != "" && !found:
		return ChosenPlanner{}, fmt.Errorf("--planner %s: %w", name, err)
	case !found:
		return ChosenPlanner{Planner: builtin, Notice: PlannerNotice}, nil
	}
	notice := fmt.Sprintf("planner: built-in catalogue (containerlab %s), because the hooks fail: %v", kinds.ContainerlabVersion, err)
	return ChosenPlanner{Planner: builtin, Notice: notice, Loud: true}, nil
}

// cacheDir returns a folder of c9s' cache, or "" if the user has none.
func cacheDir(name string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "c9s", name)
}
