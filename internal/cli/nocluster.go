//go:build nocluster

package cli

import "github.com/spf13/cobra"

func clusterCommands(IO) []*cobra.Command { return nil }
