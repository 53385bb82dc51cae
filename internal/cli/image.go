//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/c9simage"
)

func newImage(world IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build or push the c9s image",
		Long: `The c9s image holds the controller and the sidecar as static programs. It is built from
a checkout of c9s with Go, without Docker. The same source gives the same digest.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImageBuild(world), newImagePush(world))
	return cmd
}

// imageBuild are the flags of building the image.
type imageBuild struct {
	source    string
	platforms []string
	version   string
}

func (f *imageBuild) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.source, "source", ".", "checkout of c9s")
	fs.StringSliceVar(&f.platforms, "platform", []string{"linux/amd64", "linux/arm64"}, "platforms of the image")
	fs.StringVar(&f.version, "version", Version, "version that the programs report")
	_ = cmd.MarkFlagDirname("source")
}

func newImageBuild(world IO) *cobra.Command {
	var f imageBuild
	var output string
	cmd := &cobra.Command{
		Use:   "build [REFERENCE]",
		Short: "Build the image into an OCI layout or archive",
		Example: `  c9s image build -o image/
  c9s image build registry.example.net/c9s:dev -o c9s.tar --platform linux/amd64`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := imageReference(args)
			if err != nil {
				return err
			}
			if output == "" {
				return fmt.Errorf("set the output: -o FOLDER or -o FILE.tar")
			}
			index, err := f.build(cmd.Context(), world)
			if err != nil {
				return fail(err)
			}
			write := c9simage.WriteLayout
			if strings.HasSuffix(output, ".tar") {
				write = c9simage.WriteArchive
			}
			if err := write(output, index, ref.Name()); err != nil {
				return fail(err)
			}
			return fail(tellImage(world, ref, index))
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "folder for an OCI layout, or a file that ends in .tar")
	return cmd
}

func newImagePush(world IO) *cobra.Command {
	var f imageBuild
	var insecure bool
	cmd := &cobra.Command{
		Use:     "push [REFERENCE]",
		Short:   "Build the image and push it to its registry",
		Long:    "Push builds the image and pushes it with the credentials of docker login. REFERENCE\ndefaults to the image that this version uses in Pods.",
		Example: `  c9s image push registry.example.net/team/c9s:dev`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var options []name.Option
			if insecure {
				options = append(options, name.Insecure)
			}
			ref, err := imageReference(args, options...)
			if err != nil {
				return err
			}
			index, err := f.build(cmd.Context(), world)
			if err != nil {
				return fail(err)
			}
			if err := c9simage.Push(cmd.Context(), index, ref); err != nil {
				return fail(fmt.Errorf("pushing %s: %w", ref, err))
			}
			return fail(tellImage(world, ref, index))
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&insecure, "insecure-registry", false, "reach the registry by plain HTTP")
	return cmd
}

func imageReference(args []string, options ...name.Option) (name.Reference, error) {
	text := defaultImage()
	if len(args) > 0 {
		text = args[0]
	}
	ref, err := name.ParseReference(text, options...)
	if err != nil {
		return nil, fmt.Errorf("image reference %q: %w", text, err)
	}
	if _, digest := ref.(name.Digest); digest {
		return nil, fmt.Errorf("image reference %q: use a tag; the build determines the digest", text)
	}
	return ref, nil
}

// tellImage prints the reference with its digest, which is what --image takes.
func tellImage(world IO, ref name.Reference, index v1.ImageIndex) error {
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(world.Out, "%s@%s\n", ref.Name(), digest)
	return err
}

func (f *imageBuild) build(ctx context.Context, world IO) (v1.ImageIndex, error) {
	source, err := c9simage.FindSource(f.source)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "c9s-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	images := map[string]v1.Image{}
	var platforms []v1.Platform
	for _, text := range f.platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil || platform.OS != "linux" || platform.Architecture == "" {
			return nil, fmt.Errorf("--platform %q: write linux/amd64 or linux/arm64", text)
		}
		fmt.Fprintf(world.Err, "building for %s\n", platform)
		programs, err := c9simage.Compile(ctx, source, f.version, *platform, dir)
		if err != nil {
			return nil, err
		}
		image, err := c9simage.Image(*platform, f.version, programs)
		if err != nil {
			return nil, err
		}
		images[platform.String()] = image
		platforms = append(platforms, *platform)
	}
	return c9simage.Index(images, platforms)
}
