//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

type logsFlags struct {
	nodeRef
	options corev1.PodLogOptions
	tail    int64
	sidecar bool

	world     IO
	client    *cluster.Client
	namespace string
	node      cluster.Node
}

func newLogs(world IO) *cobra.Command {
	f := &logsFlags{world: world}
	cmd := &cobra.Command{
		Use:   "logs NODE",
		Short: "Print the log of a node",
		Long: `Logs prints the log of a node's container. With --follow it goes on when the container
restarts or the Pod is replaced, and says so, until you press Ctrl-C or the node is stopped.`,
		Example: "  c9s logs R1\n  c9s logs R1 -f --tail 20\n  c9s logs R1 --sidecar",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), args[0])
		},
	}
	f.add(cmd, world, "t")
	fs := cmd.Flags()
	fs.BoolVarP(&f.options.Follow, "follow", "f", false, "follow the log")
	fs.BoolVarP(&f.options.Previous, "previous", "p", false, "print the log of the previous run of the container")
	fs.BoolVar(&f.options.Timestamps, "timestamps", false, "print the time of each line")
	fs.Int64Var(&f.tail, "tail", -1, "number of lines from the end to print")
	fs.BoolVar(&f.sidecar, "sidecar", false, "print the log of the node's sidecar")
	return cmd
}

func (f *logsFlags) run(ctx context.Context, name string) error {
	client, found, node, err := f.runningNode(ctx, f.world, name)
	if err != nil {
		return err
	}
	f.client, f.namespace, f.node = client, found.Namespace, node
	switch {
	case f.sidecar:
		f.options.Container = contract.WireContainer
	case len(node.Containers) == 0:
		return fail(fmt.Errorf("%w; use --sidecar for the log of its sidecar", noContainer(node)))
	default:
		f.options.Container = node.Containers[0]
	}
	if f.tail >= 0 {
		f.options.TailLines = &f.tail
	}
	if f.options.Follow && !f.options.Previous {
		err = f.follow(ctx, found)
	} else {
		err = f.once(ctx)
	}
	if ctx.Err() != nil {
		return exitCode(exitInterrupted)
	}
	return fail(err)
}

func (f *logsFlags) once(ctx context.Context) error {
	pod, err := f.client.Pod(ctx, f.namespace, f.node.Deployment)
	if err != nil {
		return err
	}
	return f.client.Logs(ctx, f.namespace, pod.Name, f.options, show.Stream(f.world.Out))
}

// instance is one run of a container.
type instance struct {
	pod      types.UID
	restarts int32
}

// logRetry is how often a log that has ended is looked for.
const logRetry = time.Second

// follow prints the log of each run of the container.
func (f *logsFlags) follow(ctx context.Context, found cluster.Found) error {
	var last *instance
	told := false
	for {
		pod, err := f.client.Pod(ctx, f.namespace, f.node.Deployment)
		switch {
		case errors.Is(err, access.ErrAway):
			if err := f.stopped(ctx, found); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			now, runs := instanceOf(pod, f.options.Container)
			if last == nil || runs && now != *last {
				if last != nil {
					fmt.Fprintln(f.world.Err, restarted(f.node.Name, *last, now))
				}
				if err := f.client.Logs(ctx, f.namespace, pod.Name, f.options, show.Stream(f.world.Out)); err != nil && (last == nil || ctx.Err() != nil) {
					return err
				}
				last, told = &now, false
				f.options.TailLines, f.options.SinceTime = nil, nil
			} else if runs { // the connection has ended, not the container
				f.options.SinceTime = &metav1.Time{Time: time.Now().Add(-logRetry)}
				last.restarts = -1
				continue
			} else if !told {
				told = true
				fmt.Fprintf(f.world.Err, "%s: the container has ended\n", f.node.Name)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(logRetry):
		}
	}
}

// stopped is the error for a node that was stopped while its log was followed.
func (f *logsFlags) stopped(ctx context.Context, found cluster.Found) error {
	nodes, err := f.client.Nodes(ctx, found)
	if err != nil {
		return err
	}
	chosen, err := cluster.Select(nodes, []string{f.node.Name})
	if err != nil {
		return err
	}
	return notStopped(chosen[0])
}

// instanceOf returns the present run of a container, and reports whether it runs.
func instanceOf(pod *corev1.Pod, container string) (instance, bool) {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for _, s := range list {
			if s.Name == container {
				return instance{pod.UID, s.RestartCount}, s.State.Running != nil && pod.DeletionTimestamp == nil
			}
		}
	}
	return instance{pod.UID, 0}, false
}

// restarted says what has become of a container whose log is followed.
func restarted(node string, before, now instance) string {
	switch {
	case before.restarts < 0 && before.pod == now.pod:
		return node + ": the connection to the log was interrupted; lines may be missing or repeated"
	case before.pod != now.pod:
		return node + ": the Pod was replaced; this is the log of the new one"
	}
	return fmt.Sprintf("%s: the container restarted (restart %d)", node, now.restarts)
}
