//go:build !nocluster

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/transfer"
)

type cpFlags struct {
	nodeRef
	archive bool
	follow  bool
	quiet   bool
	output  string
}

func newCp(world IO) *cobra.Command {
	f := &cpFlags{}
	cmd := &cobra.Command{
		Use:   "cp NODE:PATH PATH | PATH NODE:PATH",
		Short: "Copy files and folders from and to nodes",
		Long: `Cp copies a file or a folder from a node's container to this machine, or the other way.
It follows the rules of docker cp: if the destination is a folder, cp copies into it;
otherwise the copy has the name of the destination. With "/." at the end of the source, cp
copies the contents of the folder. "-" is a tar stream on standard output or standard input.
The image needs no tar. Cp writes existing files in place, so it can also write files that
are mounted.`,
		Example: `  c9s cp R1:/etc/frr/frr.conf .
  c9s cp images/ R1:/tmp
  c9s cp srl1:/etc/opt/srlinux/config.json - | tar tv`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.output != "" && f.output != "json" {
				return fmt.Errorf("--output %q: use json", f.output)
			}
			return f.run(cmd.Context(), world, args[0], args[1])
		},
	}
	f.add(cmd, world, "t")
	cmd.ValidArgsFunction = nil // files too
	fs := cmd.Flags()
	fs.BoolVarP(&f.archive, "archive", "a", false, "keep owners (numbers of users and groups)")
	fs.BoolVarP(&f.follow, "follow-link", "L", false, "copy what the source leads to if it is a symbolic link")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "do not report what was copied")
	fs.StringVarP(&f.output, "output", "o", "", "json prints the number of files and bytes as JSON")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// splitPath splits NODE:PATH. A path of this machine may contain a colon after a dot or a slash.
func splitPath(text string) (node, file string) {
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") || filepath.VolumeName(text) != "" {
		return "", text
	}
	if node, file, found := strings.Cut(text, ":"); found {
		return node, file
	}
	return "", text
}

func (f *cpFlags) run(ctx context.Context, world IO, from, to string) error {
	fromNode, fromPath := splitPath(from)
	toNode, toPath := splitPath(to)
	switch {
	case (fromNode == "") == (toNode == ""):
		return errors.New("name one node, as in R1:/etc/hosts: its path is the source or the destination")
	case fromPath == "" || toPath == "":
		return errors.New("the path is missing")
	}
	client, found, node, err := f.runningNode(ctx, world, cmp.Or(fromNode, toNode))
	if err != nil {
		return err
	}
	c, err := openCopier(ctx, client, found, node)
	if err != nil {
		return fail(err)
	}
	if fromNode != "" && toPath == "-" {
		return fail(c.stream(ctx, world, absolute(fromPath), f.follow))
	}
	var done transfer.Result
	if fromNode != "" {
		done, err = c.fetch(ctx, world, absolute(fromPath), toPath, f.follow, f.archive)
	} else {
		done, err = c.send(ctx, world, fromPath, absolute(toPath), f.follow, f.archive)
	}
	switch {
	case err != nil:
		return fail(err)
	case f.output == "json":
		return fail(printJSON(world.Out, done))
	case !f.quiet:
		fmt.Fprintf(world.Err, "copied %d files, %s\n", done.Files, size(uint64(done.Bytes)))
	}
	return nil
}

// absolute returns a path in a container from its root, as docker does. It keeps a slash at
// the end, which says something.
func absolute(file string) string {
	if strings.HasPrefix(file, "/") {
		return file
	}
	return "/" + file
}

// copier copies from and to one container by the helper in it.
type copier struct {
	client                    *cluster.Client
	node                      cluster.Node
	namespace, pod, container string
}

func openCopier(ctx context.Context, client *cluster.Client, found cluster.Found, node cluster.Node) (*copier, error) {
	if len(node.Containers) == 0 {
		return nil, noContainer(node)
	}
	pod, err := client.Pod(ctx, found.Namespace, node.Deployment)
	if err != nil {
		return nil, err
	}
	return &copier{client, node, found.Namespace, pod.Name, node.Containers[0]}, nil
}

// helperPath is where a device's container has the helper.
const helperPath = contract.HelperDir + "/" + contract.HelperFile

// run runs the helper.
func (c *copier) run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	var complaint cluster.Buffer
	code, err := c.client.Pipe(ctx, c.namespace, c.pod, c.container, append([]string{helperPath}, args...), cluster.Streams{In: in, Out: out, Err: &complaint})
	var missing *cluster.ProgramError
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("node %s: the container has no helper of c9s", c.node.Name)
	case err != nil:
		return fmt.Errorf("node %s: %w", c.node.Name, err)
	case code == ExitUsage:
		return fmt.Errorf("node %s runs with an older c9s: deploy the lab again", c.node.Name)
	case code != 0:
		text := strings.TrimPrefix(strings.TrimSpace(complaint.String()), "c9s-sidecar: ")
		return fmt.Errorf("node %s: %s", c.node.Name, cmp.Or(text, fmt.Sprintf("exit code %d", code)))
	}
	return nil
}

// packArguments are those of the helper for a source in the container.
func packArguments(file string, follow bool) []string {
	args := []string{"pack", "--name", baseName(path.Clean(file))}
	if follow {
		args = append(args, "--follow")
	}
	return append(args, "--", path.Clean(file))
}

// baseName is what a source is called in the stream.
func baseName(file string) string {
	if base := path.Base(filepath.ToSlash(file)); base != "/" && base != "." {
		return base
	}
	return "root"
}

// stream writes a source of the container to standard output.
func (c *copier) stream(ctx context.Context, world IO, file string, follow bool) error {
	return c.run(ctx, nil, show.Raw(world.Out), packArguments(file, follow)...)
}

// fetch copies from the container.
func (c *copier) fetch(ctx context.Context, world IO, from, to string, follow, owners bool) (transfer.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	ran := make(chan error, 1)
	go func() {
		err := c.run(ctx, nil, w, packArguments(from, follow)...)
		w.CloseWithError(err)
		ran <- err
	}()
	done, err := transfer.Unpack(r, to, transfer.UnpackOptions{Name: baseName(path.Clean(from)), Inside: contents(from), Owners: owners, Modes: fs.ModePerm})
	r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	if err != nil {
		cancel() // the rest of the stream, which may have no end
	}
	if failed := <-ran; failed != nil && (err == nil || errors.Is(err, failed)) {
		return done, failed
	}
	return done, err
}

// contents reports whether what is in a folder is meant, and not the folder.
func contents(file string) bool {
	file = filepath.ToSlash(file)
	return file == "." || strings.HasSuffix(file, "/.")
}

// send copies to the container.
func (c *copier) send(ctx context.Context, world IO, from, to string, follow, owners bool) (transfer.Result, error) {
	args := []string{"unpack"}
	in := world.In
	packed := make(chan error, 1)
	if from == "-" {
		args = append(args, "--whole")
		packed <- nil
	} else {
		file, err := filepath.Abs(from)
		if err != nil {
			return transfer.Result{}, err
		}
		if _, err := os.Lstat(file); err != nil {
			return transfer.Result{}, err
		}
		if contents(from) {
			args = append(args, "--inside")
		}
		r, w := io.Pipe()
		defer r.Close()
		go func() {
			err := transfer.Pack(w, file, transfer.PackOptions{Name: baseName(file), Follow: follow, Skipped: func(path string) {
				fmt.Fprintf(world.Err, "%s is left out: it is no file, folder or link\n", path)
			}})
			w.CloseWithError(err)
			packed <- err
		}()
		in = r
	}
	if owners && runtime.GOOS != "windows" {
		args = append(args, "--owners")
	}
	var out bytes.Buffer
	if err := c.run(ctx, in, &out, append(args, "--", to)...); err != nil {
		select { // what is wrong here is why the node is not satisfied
		case local := <-packed:
			if local != nil && !errors.Is(local, io.ErrClosedPipe) {
				err = local
			}
		default:
		}
		return transfer.Result{}, err
	}
	var done transfer.Result
	if err := json.Unmarshal(out.Bytes(), &done); err != nil {
		return done, fmt.Errorf("node %s: the helper answers %.80q", c.node.Name, out.String())
	}
	select {
	case err := <-packed:
		return done, err
	default:
		return done, nil
	}
}
