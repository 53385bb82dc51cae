package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// unversioned is the version of a build that sets none.
const unversioned = "dev"

// Version is c9s' own version; the build sets it.
var Version = unversioned

// released reports whether two builds of a version are the same program. Builds without a
// version, and of a checkout with changes ("v1.2-dirty"), may differ.
func released(version string) bool {
	return version != unversioned && !strings.HasSuffix(version, "-dirty")
}

// defaultImage is the image that the Pods of this version use.
func defaultImage() string { return "ghcr.io/c9s-lab/c9s:" + Version }

func newVersion(world IO) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version and the available planner",
		Example: "  c9s version\n  c9s version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f := &topoFlags{planner: "auto"}
			planner, err := f.choosePlanner(kinds.Builtin())
			if err != nil {
				return err
			}
			if closer, ok := planner.Planner.(io.Closer); ok {
				defer closer.Close()
			}
			info := struct {
				Version      string `json:"version"`
				Containerlab string `json:"containerlab"`
				Planner      string `json:"planner"`
				Image        string `json:"image"`
				Go           string `json:"go"`
				Platform     string `json:"platform"`
			}{Version, kinds.ContainerlabVersion, planner.Name(), defaultImage(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			switch output {
			case "json":
				return fail(printJSON(world.Out, info))
			case "":
				if planner.Notice != "" {
					info.Planner += "\n" + planner.Notice
				}
				_, err := fmt.Fprintf(world.Out, "c9s %s\ncontainerlab vocabulary %s\nplanner %s\nimage %s\n%s %s\n",
					info.Version, info.Containerlab, info.Planner, info.Image, info.Go, info.Platform)
				return fail(err)
			default:
				return fmt.Errorf("--output %q: use json", output)
			}
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}

func printJSON(w interface{ Write([]byte) (int, error) }, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printYAML prints a value as a YAML document.
func printYAML(w io.Writer, v any) error {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	_, err = show.Document(w).Write(text)
	return err
}

// printJSONLine prints a value as one line of JSON.
func printJSONLine(w interface{ Write([]byte) (int, error) }, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
