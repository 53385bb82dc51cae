package cli

import "context"

// step is one named step of a command that changes a cluster.
type step struct {
	name string
	run  func(ctx context.Context) error
}

// runSteps runs steps in order until one fails. announce is called with the name of each
// before it runs.
func runSteps(ctx context.Context, announce func(name string), steps []step) error {
	for _, s := range steps {
		announce(s.name)
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	return nil
}
