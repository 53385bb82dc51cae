package cli

import (
	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/pipeline"
)

// imageFlags ask registries about the images of a lab.
type imageFlags struct {
	resolve  bool
	pin      bool
	platform string
	mirrors  []string
	insecure []string
}

func (f *imageFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.resolve, "resolve-images", false, "ask the registries: every image must exist; a healthcheck of the image becomes the readiness probe")
	fs.BoolVar(&f.pin, "pin", false, "pin images to their digests (asks the registries)")
	fs.StringVar(&f.platform, "platform", "linux/amd64", "platform of the images, with --resolve-images or --pin")
	fs.StringArrayVar(&f.mirrors, "registry-mirror", nil, "HOST=MIRROR: use MIRROR instead of the registry HOST (repeatable)")
	fs.StringSliceVar(&f.insecure, "insecure-registry", nil, "registry hosts to reach by plain HTTP")
}

// images returns what to ask the registries.
func (f *imageFlags) images() (pipeline.Images, error) {
	mirrors, err := parsePairs("registry-mirror", f.mirrors)
	return pipeline.Images{Resolve: f.resolve, Pin: f.pin, Platform: f.platform, Mirrors: mirrors, Insecure: f.insecure}, err
}
