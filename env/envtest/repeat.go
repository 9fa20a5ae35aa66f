package envtest

import (
	"context"
	"fmt"
	"sync"

	"clustergym/env"
)

func (s *suite) equalEpisodesGiveEqualBytes() error {
	e, other := s.first(), s.open()
	for k := range s.episodes {
		want, err := s.record(e, s.episode(k))
		if err != nil {
			return err
		}
		if err := s.repeat(other, s.episode(k), want); err != nil {
			return fmt.Errorf("episode %d in a second instance: %w", k, err)
		}
		// Begin another episode in between and abandon it.
		if _, _, err := s.advance(e, s.episode(k+1), 0); err != nil {
			return err
		}
		if err := s.repeat(e, s.episode(k), want); err != nil {
			return fmt.Errorf("episode %d played again: %w", k, err)
		}
		if _, _, err := s.advance(e, s.episode(k), (len(want)-1)/2); err != nil {
			return err
		}
		if err := s.repeat(e, s.episode(k), want); err != nil {
			return fmt.Errorf("episode %d after a reset in its middle: %w", k, err)
		}
	}
	return nil
}

func (s *suite) episodesStandAlone() error {
	e := s.first()
	all := make([][]digest, s.episodes)
	for k := range all {
		var err error
		if all[k], err = s.record(e, s.episode(k)); err != nil {
			return err
		}
	}
	fresh := s.open()
	for k := len(all) - 1; k >= 0; k-- {
		if err := s.repeat(fresh, s.episode(k), all[k]); err != nil {
			return fmt.Errorf("episode %d, played in another order: %w", k, err)
		}
	}
	return nil
}

// buffersBelongToTheCaller plays one episode with two alternating time steps: the one not in use must stay unchanged,
// and values written over either must not be read back. It overwrites the action as soon as Step returns.
func (s *suite) buffersBelongToTheCaller() error {
	want, err := s.record(s.open(), s.episode(0))
	if err != nil {
		return err
	}
	e, ctx := s.first(), context.Background()
	turn, idle := env.NewTimeStep(s.spec), env.NewTimeStep(s.spec)
	p := s.player(s.episode(0).Seed)
	if err := e.Reset(ctx, s.episode(0), turn); err != nil {
		return err
	}
	for i, w := range want {
		if err := digestOf(turn).differs(w); err != nil {
			return fmt.Errorf("step %d, with the buffers of earlier steps overwritten: %w", i, err)
		}
		if i == len(want)-1 {
			break
		}
		a := p.choose(turn)
		kept := digestOf(turn)
		litter(idle)
		if err := e.Step(ctx, a, idle); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if err := digestOf(turn).differs(kept); err != nil {
			return fmt.Errorf("step %d wrote to the buffers of the step before: %w", i+1, err)
		}
		for k := range a.Disc {
			a.Disc[k] = -1
		}
		for k := range a.Cont {
			a.Cont[k] = 1e30
		}
		litter(turn)
		turn, idle = idle, turn
	}
	return nil
}

func (s *suite) instancesShareNothing() error {
	const n = 3
	envs := []env.Env{s.first(), s.open(), s.open()}
	var want, got [n][]digest
	for i := range want {
		var err error
		if want[i], err = s.record(envs[0], s.episode(i)); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	var errs [n]error
	for i := range got {
		wg.Go(func() { got[i], errs[i] = s.record(envs[i], s.episode(i)) })
	}
	wg.Wait()
	for i := range got {
		if errs[i] != nil {
			return errs[i]
		}
		if len(got[i]) != len(want[i]) {
			return fmt.Errorf("episode %d takes %d steps beside others, %d alone", i, len(got[i])-1, len(want[i])-1)
		}
		for k := range got[i] {
			if err := got[i][k].differs(want[i][k]); err != nil {
				return fmt.Errorf("episode %d, step %d, beside others: %w", i, k, err)
			}
		}
	}
	return nil
}
