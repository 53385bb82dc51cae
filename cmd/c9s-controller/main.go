// Command c9s-controller is `c9s controller` alone: the program in c9s' image, which
// has no use for the rest.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/c9s-lab/c9s/pkg/controller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := controller.Command(os.Stderr)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "c9s-controller:", err)
		os.Exit(1)
	}
}
