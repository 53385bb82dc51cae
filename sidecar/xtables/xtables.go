// Package xtables puts accept rules into the tables of the old iptables (x_tables),
// which a device may use in place of nf_tables: cEOS does. They are read and
// replaced as a whole, as iptables-legacy itself does.
package xtables

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/passage"
)

// AssertPassage puts the accept rules at the top of every chain that the device has
// and that holds something back. Tables that are not there are not made, chains that
// have the rules there already not touched, doubles are removed. It tells how many
// tables it changed.
func AssertPassage(p passage.Passage) (int, error) {
	changed := 0
	var errs []error
	err := eachTable(func(s *socket, name string) {
		did, err := assert(s, name, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("accept rules in the device's table %s (iptables-legacy): %w", name, err))
		}
		if did {
			changed++
		}
	})
	return changed, errors.Join(append(errs, err)...)
}

// tries is how often a table is read again that the device changed meanwhile.
const tries = 3

func assert(s *socket, name string, p passage.Passage) (bool, error) {
	for n := 1; ; n++ {
		in, err := s.info(name)
		if err != nil {
			return false, err
		}
		t, err := s.read(name, in)
		if err != nil {
			return false, err
		}
		if !t.admit(p.Rules) {
			return false, nil
		}
		err = s.write(t)
		if err == nil || n == tries || !errors.Is(err, unix.EAGAIN) {
			return err == nil, err
		}
	}
}

// eachTable calls do for every table that filters.
func eachTable(do func(s *socket, name string)) error {
	var errs []error
	for _, f := range []*family{ipv4, ipv6} {
		names, err := f.tables()
		if err != nil {
			errs = append(errs, err)
		}
		if len(names) == 0 {
			continue
		}
		s, err := f.open()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, name := range names {
			if name != "nat" {
				do(s, name)
			}
		}
		s.close()
	}
	return errors.Join(errs...)
}

// lookEvery is how often Watch looks: the kernel tells nobody of a change.
const lookEvery = 500 * time.Millisecond

// small is how large a table may be, bytes, to be read each time: of a larger one a
// change of policy alone is not seen.
const small = 64 << 10

// Watch calls changed after tables came, went, or got another number of rules or
// another policy, until ctx ends.
func Watch(ctx context.Context, changed func()) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last := shape()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := shape(); now != last {
			last = now
			changed()
		}
	}
}

// shape is what Watch compares.
func shape() string {
	text := ""
	_ = eachTable(func(s *socket, name string) {
		in, err := s.info(name)
		text += fmt.Sprintln(s.family.domain, name, in.NumEntries, in.Size, in.HookEntry, err)
		if err != nil || in.Size > small {
			return
		}
		if t, err := s.read(name, in); err == nil {
			text += fmt.Sprintln(t.policies())
		}
	})
	return text
}
