//go:build !nocluster

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/cluster"
)

// dockerHas names what the shim does.
const dockerHas = "exec, logs, cp, ps, inspect, start, stop, restart and version"

func newDocker(world IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "docker COMMAND",
		Short: "Run docker's exec, logs, cp, ps, inspect and others for nodes",
		Long: `Docker implements the docker commands that scripts for labs use, for the nodes of labs in the
cluster: exec, logs, cp, ps, inspect, start, stop and restart, with docker's flags. Containers
have the names that containerlab gives them, clab-LAB-NODE; the beginning of their ID works
too. The processes of a node do not run on this machine: .State.Pid is 0, so nsenter does not
work.`,
		Example: `  c9s shim docker exec -it clab-mylab-R1 bash
  c9s shim docker ps --filter label=clab-node-kind=linux --format '{{.Names}}'
  c9s shim docker inspect -f '{{.State.Running}}' clab-mylab-R1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return fail(fmt.Errorf("docker %s: there is no docker behind this name; c9s answers %s for the nodes of labs", args[0], dockerHas))
		},
	}
	container := &cobra.Command{Use: "container", Short: "docker's other form of these commands", Hidden: true, Args: cmd.Args, RunE: cmd.RunE}
	list := newDockerPs(world)
	list.Use, list.Aliases = "ls", []string{"list", "ps"}
	container.AddCommand(newDockerExec(world), newDockerLogs(world), newDockerCp(world), list, newDockerInspect(world))
	container.AddCommand(newDockerLifecycle(world)...)
	cmd.AddCommand(newDockerExec(world), newDockerLogs(world), newDockerCp(world), newDockerPs(world), newDockerInspect(world), newDockerVersion(world), container)
	cmd.AddCommand(newDockerLifecycle(world)...)
	return cmd
}

// open connects and finds a container.
func openContainer(ctx context.Context, world IO, name string) (*foundContainer, error) {
	client, err := (&targetFlags{}).connect(ctx, world)
	if err != nil {
		return nil, err
	}
	c, err := findContainer(ctx, client, name)
	return c, fail(err)
}

// running is openContainer of one that must run.
func runningContainer(ctx context.Context, world IO, name string) (*foundContainer, error) {
	c, err := openContainer(ctx, world, name)
	if err == nil && !c.Running() {
		return nil, fail(fmt.Errorf("container %s is not running: it is %s", name, strings.ToLower(containerStatus(&c.Container))))
	}
	return c, err
}

type dockerExec struct {
	stdin, tty, detach bool
	env, envFiles      []string
	user, dir          string
}

func newDockerExec(world IO) *cobra.Command {
	f := &dockerExec{}
	cmd := &cobra.Command{
		Use:     "exec CONTAINER COMMAND [ARG...]",
		Short:   "Run a command in a node",
		Example: "  docker exec -it clab-mylab-R1 vtysh\n  docker exec -u admin -w /tmp -e A=1 clab-mylab-R1 env",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			argv, err := f.argv(args[1:])
			if err != nil {
				return err
			}
			c, err := runningContainer(cmd.Context(), world, args[0])
			if err != nil {
				return err
			}
			e := execFlags{nodeRef: c.ref(targetFlags{}), stdin: f.stdin && !f.detach, tty: f.tty && !f.detach, quiet: true}
			return e.run(cmd.Context(), world, []string{c.node}, argv)
		},
	}
	fs := cmd.Flags()
	fs.SetInterspersed(false)
	fs.BoolVarP(&f.stdin, "interactive", "i", false, "pass standard input to the command")
	fs.BoolVarP(&f.tty, "tty", "t", false, "allocate a terminal")
	fs.BoolVarP(&f.detach, "detach", "d", false, "run the command in the background")
	fs.StringArrayVarP(&f.env, "env", "e", nil, "environment variable: NAME=VALUE, or NAME for this machine's value")
	fs.StringArrayVar(&f.envFiles, "env-file", nil, "file with environment variables")
	fs.StringVarP(&f.user, "user", "u", "", "user, or USER:GROUP")
	fs.StringVarP(&f.dir, "workdir", "w", "", "working directory")
	ignoreFlags(cmd, []string{"privileged"}, "detach-keys")
	return cmd
}

// ignoreFlags adds flags of docker that mean nothing here.
func ignoreFlags(cmd *cobra.Command, switches []string, values ...string) {
	for _, name := range switches {
		cmd.Flags().Bool(name, false, "ignored")
		_ = cmd.Flags().MarkHidden(name)
	}
	for _, name := range values {
		cmd.Flags().String(name, "", "ignored")
		_ = cmd.Flags().MarkHidden(name)
	}
}

// argv wraps a command by the helper in the container where it needs more than Kubernetes'
// exec offers.
func (f *dockerExec) argv(command []string) ([]string, error) {
	env, err := f.environment()
	if err != nil {
		return nil, err
	}
	if len(env) == 0 && f.user == "" && f.dir == "" && !f.detach {
		return command, nil
	}
	argv := []string{helperPath, "as"}
	if f.user != "" {
		argv = append(argv, "--user", f.user)
	}
	if f.dir != "" {
		argv = append(argv, "--dir", f.dir)
	}
	for _, e := range env {
		argv = append(argv, "--env", e)
	}
	if f.detach {
		argv = append(argv, "--detach")
	}
	return append(append(argv, "--"), command...), nil
}

// environment reads -e and --env-file.
func (f *dockerExec) environment() ([]string, error) {
	var list []string
	for _, name := range f.envFiles {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
				list = append(list, line)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, text := range append(list, f.env...) {
		if !strings.Contains(text, "=") {
			value, found := os.LookupEnv(text)
			if !found {
				continue
			}
			text += "=" + value
		}
		out = append(out, text)
	}
	return out, nil
}

func newDockerLogs(world IO) *cobra.Command {
	f := &logsFlags{world: world, tail: -1}
	var tail, since string
	cmd := &cobra.Command{
		Use:     "logs CONTAINER",
		Short:   "Print the log of a node",
		Example: "  docker logs -f --tail 20 clab-mylab-R1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := dockerTail(f, tail, since, time.Now()); err != nil {
				return err
			}
			c, err := openContainer(cmd.Context(), world, args[0])
			if err != nil {
				return err
			}
			f.nodeRef = c.ref(targetFlags{})
			return f.run(cmd.Context(), c.node)
		},
	}
	fs := cmd.Flags()
	fs.BoolVarP(&f.options.Follow, "follow", "f", false, "follow the log")
	fs.BoolVarP(&f.options.Timestamps, "timestamps", "t", false, "print the time of each line")
	fs.StringVarP(&tail, "tail", "n", "all", "number of lines from the end to print")
	fs.StringVar(&since, "since", "", "print lines since a time (RFC 3339) or for so long (42m)")
	ignoreFlags(cmd, []string{"details"})
	return cmd
}

// dockerTail reads docker's --tail and --since.
func dockerTail(f *logsFlags, tail, since string, now time.Time) error {
	if tail != "all" && tail != "" {
		n, err := strconv.ParseInt(tail, 10, 64)
		if err != nil {
			return fmt.Errorf("--tail %q: use a number or all", tail)
		}
		f.tail = n
	}
	if since == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339, since)
	if d, bad := time.ParseDuration(since); bad == nil {
		at, err = now.Add(-d), nil
	} else if seconds, bad := strconv.ParseFloat(since, 64); bad == nil {
		at, err = time.Unix(int64(seconds), 0), nil
	}
	if err != nil {
		return fmt.Errorf("--since %q: use a time such as 2026-01-02T15:04:05Z, or a duration such as 10m", since)
	}
	f.options.SinceTime = &metav1.Time{Time: at}
	return nil
}

func newDockerCp(world IO) *cobra.Command {
	f := &cpFlags{}
	cmd := &cobra.Command{
		Use:     "cp CONTAINER:PATH PATH | PATH CONTAINER:PATH",
		Short:   "Copy files and folders from and to a node",
		Example: "  docker cp clab-mylab-R1:/etc/hosts .",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			for i, arg := range args {
				name, file := splitPath(arg)
				if name == "" {
					continue
				}
				c, err := runningContainer(cmd.Context(), world, name)
				if err != nil {
					return err
				}
				f.nodeRef = c.ref(targetFlags{})
				args[i] = c.node + ":" + file
			}
			return f.run(cmd.Context(), world, args[0], args[1])
		},
	}
	fs := cmd.Flags()
	fs.BoolVarP(&f.archive, "archive", "a", false, "keep owners")
	fs.BoolVarP(&f.follow, "follow-link", "L", false, "copy what the source leads to if it is a symbolic link")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "do not report what was copied")
	return cmd
}

// newDockerLifecycle returns start, stop and restart, by c9s' own.
func newDockerLifecycle(world IO) []*cobra.Command {
	var out []*cobra.Command
	for verb, own := range map[string]func(IO) *cobra.Command{"start": newStart, "stop": newStop, "restart": newRestart} {
		cmd := &cobra.Command{
			Use:     verb + " CONTAINER...",
			Short:   strings.ToUpper(verb[:1]) + verb[1:] + " nodes",
			Example: "  docker " + verb + " clab-mylab-R1",
			Args:    cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				var failed []error
				for _, name := range args {
					c, err := openContainer(cmd.Context(), world, name)
					if err == nil {
						node, _, _ := strings.Cut(c.node, "/")
						err = runCommand(cmd.Context(), own(world), node, "--lab", c.Lab.Name, "-n", c.Lab.Namespace)
					}
					if err == nil {
						fmt.Fprintln(world.Out, name)
					}
					failed = append(failed, err)
				}
				return errors.Join(failed...)
			},
		}
		cmd.Flags().StringP("time", "t", "", "ignored")
		_ = cmd.Flags().MarkHidden("time")
		out = append(out, cmd)
	}
	return out
}

// runCommand runs another command of c9s.
func runCommand(ctx context.Context, cmd *cobra.Command, args ...string) error {
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}

func newDockerVersion(world IO) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of c9s as docker's",
		Example: "  docker version --format '{{.Server.Version}}'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			type part struct{ Version, APIVersion, Os string }
			v := struct{ Client, Server part }{part{Version, "", "linux"}, part{Version, "", "linux"}}
			if format == "" {
				_, err := fmt.Fprintf(world.Out, "c9s %s answers in place of docker: %s\n", Version, dockerHas)
				return err
			}
			return fail(printTemplate(world.Out, format, []any{v}, nil))
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "", "Go template, or json")
	return cmd
}

// commandOf is the command line of a container, as docker ps has it.
func commandOf(c *cluster.Container) (path string, args []string) {
	if c.Pod == nil {
		return "", nil
	}
	for i := range c.Pod.Spec.Containers {
		if s := &c.Pod.Spec.Containers[i]; s.Name == c.Containers[0] {
			words := append(append([]string{}, s.Command...), s.Args...)
			if len(words) > 0 {
				return words[0], words[1:]
			}
		}
	}
	return "", nil
}

// restartsOf is how often a container has restarted.
func restartsOf(c *cluster.Container) int {
	if c.State == nil {
		return 0
	}
	return int(c.State.RestartCount)
}

// specOf is the container in its Pod, empty if there is none.
func specOf(c *cluster.Container) corev1.Container {
	if c.Pod != nil {
		for _, s := range c.Pod.Spec.Containers {
			if s.Name == c.Containers[0] {
				return s
			}
		}
	}
	return corev1.Container{}
}
