package controller

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Command is `c9s controller`, which is a separate program in the c9s image.
func Command(stderr io.Writer) *cobra.Command {
	o := Options{}
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Report on the lab of this namespace (runs in the cluster)",
		Long: `Controller is what the Deployment c9s-controller runs: it watches the Pods of the
lab in its namespace, asks their sidecars, and keeps status, addresses, Events and
metrics. A lab does without it.`,
		Example: "  c9s controller",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := rest.InClusterConfig()
			if err != nil {
				return fmt.Errorf("the controller runs inside a cluster: %w", err)
			}
			if o.Namespace == "" {
				return errors.New("POD_NAMESPACE is not set")
			}
			if o.Identity == "" {
				if o.Identity, err = os.Hostname(); err != nil {
					return err
				}
			}
			o.Expires = os.Getenv(contract.ExpiryEnv) != ""
			config.UserAgent = "c9s-controller"
			// Less to read, and to keep while reading, than JSON.
			config.ContentType = runtime.ContentTypeProtobuf
			o.Log = slog.New(slog.NewTextHandler(stderr, nil))
			return Run(cmd.Context(), config, o)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.Namespace, "namespace", "n", os.Getenv("POD_NAMESPACE"), "namespace of the lab")
	fs.StringVar(&o.Identity, "identity", os.Getenv("POD_NAME"), "who holds the lease")
	fs.StringVar(&o.Address, "address", fmt.Sprintf(":%d", contract.ControllerPort), "address of probes, status and metrics")
	fs.StringVar(&o.Private, "private-address", "127.0.0.1:6060", "address of profiles")
	fs.DurationVar(&o.Interval, "interval", defaultInterval, "how often a sidecar is asked that answers at once although it has nothing new")
	return cmd
}
