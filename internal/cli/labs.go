//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/status"
)

func newLabs(world IO) *cobra.Command {
	var f targetFlags
	var namespace, output string
	var mine, orphans bool
	cmd := &cobra.Command{
		Use:   "labs",
		Short: "List the labs of the cluster",
		Long: `Labs lists the labs of the cluster with their owners and the time until they expire.
--mine lists only your own. --orphans lists what labs left behind instead: data that destroy
--keep-data kept, and namespaces that c9s created and that have no lab.`,
		Example: "  c9s labs\n  c9s labs --mine\n  c9s labs --orphans -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output %q: use json", output)
			}
			client, err := f.connect(cmd.Context(), world)
			if err != nil {
				return err
			}
			labs, err := client.Labs(cmd.Context(), namespace)
			if err != nil {
				return fail(err)
			}
			if mine {
				if labs, err = ownLabs(cmd.Context(), client, labs); err != nil {
					return err
				}
			}
			if orphans {
				return fail(printOrphans(cmd.Context(), world, client, labs, namespace, output))
			}
			return fail(printLabs(cmd.Context(), world, client, labs, output))
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "list only labs in this namespace")
	cmd.Flags().BoolVar(&mine, "mine", false, "list only labs of which you are the owner")
	cmd.Flags().BoolVar(&orphans, "orphans", false, "list what labs left behind")
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	cmd.MarkFlagsMutuallyExclusive("mine", "orphans") // what is left behind has no owner
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// labLine is one lab of -o json.
type labLine struct {
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	State     string    `json:"state"`
	Nodes     int       `json:"nodes"`
	Ready     int       `json:"ready"`
	Deployed  bool      `json:"deployed"`
	Created   time.Time `json:"created"`
	Owner     string    `json:"owner,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
}

// unreadable reports that the status of one of several labs cannot be read.
func unreadable(world IO, l cluster.Found, err error) {
	fmt.Fprintf(world.Err, "lab %s in namespace %s: %v\n", show.Cell(l.Name), l.Namespace, err)
}

func printLabs(ctx context.Context, world IO, client *cluster.Client, labs []cluster.Found, output string) error {
	lines := make([]labLine, 0, len(labs))
	for _, l := range labs {
		line := labLine{Name: l.Name, Namespace: l.Namespace, State: "data only", Deployed: l.Deployed, Created: l.Created, Owner: l.Owner, Expires: l.Expires}
		if l.DataOnly {
			lines = append(lines, line)
			continue
		}
		s, err := client.Status(ctx, l, false)
		if err != nil { // of one lab, as while it is removed: the others count
			unreadable(world, l, err)
			s.State = "unreadable"
		}
		line.State, line.Nodes = s.State, len(s.Nodes)
		for _, n := range s.Nodes {
			if n.State == status.StateReady {
				line.Ready++
			}
		}
		lines = append(lines, line)
	}
	if output == "json" {
		return printJSON(world.Out, lines)
	}
	return labTable(world.Out, lines)
}

func labTable(w io.Writer, lines []labLine) error {
	t := show.NewTable(printers.GetNewTabWriter(w))
	t.Row("LAB", "NAMESPACE", "STATE", "READY", "APPLIED BY", "OWNER", "EXPIRES", "AGE")
	for _, l := range lines {
		by := "manifests"
		if l.Deployed {
			by = "c9s deploy"
		}
		t.Row(l.Name, l.Namespace, l.State, fmt.Sprintf("%d/%d", l.Ready, l.Nodes), by, dash(l.Owner), until(l.Expires), age(l.Created))
	}
	return t.Flush()
}

// until is the time left before a lab expires.
func until(t time.Time) string {
	switch left := time.Until(t); {
	case t.IsZero():
		return "-"
	case left <= 0:
		return "expired"
	default:
		return "in " + duration.HumanDuration(left)
	}
}

// ownLabs keeps the labs of which the caller is the owner.
func ownLabs(ctx context.Context, client *cluster.Client, labs []cluster.Found) ([]cluster.Found, error) {
	user := client.User(ctx)
	if user == "" {
		return nil, fail(fmt.Errorf("the cluster does not say who you are, so c9s cannot tell your labs"))
	}
	return slices.DeleteFunc(labs, func(l cluster.Found) bool { return l.Owner != user }), nil
}

// orphan is what a lab left behind.
type orphan struct {
	Namespace string `json:"namespace"`
	Lab       string `json:"lab,omitempty"`
	What      string `json:"what"`
	Remove    string `json:"remove"`
}

// printOrphans lists what labs left behind, and how to remove it.
func printOrphans(ctx context.Context, world IO, client *cluster.Client, labs []cluster.Found, namespace, output string) error {
	empty, err := client.EmptyNamespaces(ctx, labs, namespace)
	if err != nil {
		return err
	}
	rows := []orphan{}
	for _, l := range labs {
		if l.DataOnly {
			rows = append(rows, orphan{l.Namespace, l.Name, "data of a lab that is gone", fmt.Sprintf("c9s destroy %s -n %s", l.Name, l.Namespace)})
		}
	}
	for _, name := range empty {
		rows = append(rows, orphan{Namespace: name, What: "namespace that c9s created, without a lab", Remove: "kubectl delete namespace " + name})
	}
	if output == "json" {
		return printJSON(world.Out, rows)
	}
	t := show.NewTable(printers.GetNewTabWriter(world.Out))
	t.Row("NAMESPACE", "LAB", "WHAT", "REMOVE IT")
	for _, r := range rows {
		t.Row(r.Namespace, dash(r.Lab), r.What, r.Remove)
	}
	return t.Flush()
}
