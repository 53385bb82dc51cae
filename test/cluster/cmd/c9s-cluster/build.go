package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/test/cluster/internal/binaries"
	"github.com/c9s-lab/c9s/test/cluster/internal/images"
)

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build [IMAGE...]",
		Short: "Fill the cache: the programs, and test images (" + strings.Join(images.Names(), ", ") + ")",
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := binaries.Open()
			if err != nil {
				return err
			}
			tell := func(line string) { fmt.Fprintln(os.Stderr, line) }
			for _, name := range args {
				if _, err := images.Ensure(cmd.Context(), cache, name, tell); err != nil {
					return err
				}
			}
			if len(args) > 0 {
				return nil
			}
			return cache.Ensure(cmd.Context(), binaries.Needed, tell)
		},
	}
}
