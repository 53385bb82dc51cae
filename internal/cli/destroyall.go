//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// destroyAtOnce is how many labs are deleted at the same time.
const destroyAtOnce = 4

// checkAll rejects flags that do not fit together.
func (f *destroyFlags) checkAll(args []string) error {
	switch {
	case f.mine && !f.all:
		return errors.New("--mine needs --all")
	case f.all && (len(args) > 0 || f.topo != ""):
		return errors.New("--all deletes all labs: remove it to delete one")
	case f.all && f.save:
		return errors.New("--save needs the topology of one lab: run 'c9s save' for each lab, then 'c9s destroy --all'")
	}
	return nil
}

// runAll deletes several labs. A lab that cannot be deleted does not keep the others.
func (f *destroyFlags) runAll(ctx context.Context, world IO) error {
	var answers io.Reader
	if !f.yes {
		var err error
		if answers, err = terminal(world, "Delete the labs?", "--yes"); err != nil {
			return err
		}
	}
	client, err := f.connect(ctx, world)
	if err != nil {
		return err
	}
	labs, err := client.Labs(ctx, f.namespace)
	if err != nil {
		return fail(err)
	}
	if f.mine {
		if labs, err = ownLabs(ctx, client, labs); err != nil {
			return err
		}
	}
	if len(labs) == 0 {
		fmt.Fprintln(world.Err, "there is no lab to delete")
		return nil
	}
	if !f.yes {
		if err := confirmLabs(ctx, world, answers, labs, client.Context); err != nil {
			return err
		}
	}
	errs := make([]error, len(labs))
	bounded.Each(len(labs), destroyAtOnce, func(i int) {
		if ctx.Err() != nil {
			errs[i] = ctx.Err()
			return
		}
		d := &destroying{destroyFlags: f, world: world, client: client, lab: labs[i]}
		if errs[i] = d.delete(ctx); errs[i] != nil && ctx.Err() == nil {
			fmt.Fprintf(world.Err, "lab %s in namespace %s: %v\n", show.Cell(labs[i].Name), labs[i].Namespace, errs[i])
		}
	})
	if ctx.Err() != nil {
		return exitCode(exitInterrupted)
	}
	failed := len(slices.DeleteFunc(errs, func(err error) bool { return err == nil }))
	if failed > 0 {
		return fail(fmt.Errorf("%d of %s could not be deleted", failed, diag.Count(len(labs), "lab")))
	}
	return nil
}

// confirmLabs lists labs, and asks for their names, or for their number if there are many.
func confirmLabs(ctx context.Context, world IO, in io.Reader, labs []cluster.Found, kubeContext string) error {
	t := show.NewTable(printers.GetNewTabWriter(world.Err))
	t.Row("LAB", "NAMESPACE", "OWNER", "AGE")
	for _, l := range labs {
		t.Row(l.Name, l.Namespace, dash(l.Owner), age(l.Created))
	}
	if err := t.Flush(); err != nil {
		return fail(err)
	}
	want, what := labsAnswer(labs)
	answer, err := askLine(ctx, in, world.Err, fmt.Sprintf("To delete %s from context %s, type %s:", diag.Count(len(labs), "lab"), kubeContext, what))
	if err != nil {
		return err
	}
	words := strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' })
	slices.Sort(words)
	if !slices.Equal(words, want) {
		fmt.Fprintln(world.Err, "nothing was changed")
		return exitCode(ExitDeclined)
	}
	return nil
}

// labsAnswer returns the sorted words that have to be typed to delete labs, and how the
// question describes them.
func labsAnswer(labs []cluster.Found) (words []string, what string) {
	const most = 3
	if len(labs) > most {
		return []string{strconv.Itoa(len(labs))}, "the number of labs"
	}
	for _, l := range labs {
		words = append(words, l.Name)
	}
	slices.Sort(words)
	if len(words) == 1 {
		return words, "its name"
	}
	return words, "their names"
}
