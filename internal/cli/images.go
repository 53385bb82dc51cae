package cli

import (
	"crypto/x509"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/reach"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// maxCA is the maximum size of a file of certificates in bytes.
const maxCA = 4 << 20

// imageFlags ask registries about the images of a lab.
type imageFlags struct {
	resolve  bool
	pin      bool
	platform string
	mirrors  []string
	insecure []string
	cas      []string
}

func (f *imageFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.resolve, "resolve-images", false, "ask the registries: every image must exist; a healthcheck of the image becomes the readiness probe")
	fs.BoolVar(&f.pin, "pin", false, "pin images to their digests (asks the registries)")
	fs.StringVar(&f.platform, "platform", "linux/amd64", "platform of the images, with --resolve-images or --pin")
	fs.StringArrayVar(&f.mirrors, "registry-mirror", nil, "HOST=MIRROR: use MIRROR instead of the registry HOST (repeatable)")
	fs.StringSliceVar(&f.insecure, "insecure-registry", nil, "registry hosts to reach by plain HTTP")
	fs.StringArrayVar(&f.cas, "registry-ca", nil, "file of certificates (PEM) to trust for registries, besides the system's (repeatable)")
	_ = cmd.MarkFlagFilename("registry-ca", "pem", "crt")
}

// images returns what to ask the registries.
func (f *imageFlags) images() (pipeline.Images, error) {
	mirrors, err := parsePairs("registry-mirror", f.mirrors)
	if err != nil {
		return pipeline.Images{}, err
	}
	out := pipeline.Images{Resolve: f.resolve, Pin: f.pin, Platform: f.platform, Mirrors: mirrors, Insecure: f.insecure}
	for _, name := range f.cas {
		data, err := (*reach.Reach)(nil).ReadFile(name, maxCA)
		if err != nil {
			return pipeline.Images{}, fmt.Errorf("--registry-ca %s: %w", name, topology.UnwrapPath(err))
		}
		if !x509.NewCertPool().AppendCertsFromPEM(data) {
			return pipeline.Images{}, fmt.Errorf("--registry-ca %s: the file has no certificate in PEM", name)
		}
		out.CA = append(append(out.CA, data...), '\n')
	}
	return out, nil
}
