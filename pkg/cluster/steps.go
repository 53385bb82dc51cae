package cluster

import "context"

// Step is one named step of a command that changes a cluster.
type Step struct {
	Name string
	Run  func(ctx context.Context) error
}

// RunSteps runs steps in order until one fails. announce, if not nil, is called with the
// name of each step before it runs.
func RunSteps(ctx context.Context, announce func(name string), steps []Step) error {
	for _, s := range steps {
		if announce != nil {
			announce(s.Name)
		}
		if err := s.Run(ctx); err != nil {
			return err
		}
	}
	return nil
}
