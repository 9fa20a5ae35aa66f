package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"

	"clustergym/env"
	"clustergym/internal/rng"
)

const noSnapshots = skip("the environment has no snapshots")

// snapshotter returns e as a Snapshotter, after checking it at the start of an episode.
func (s *suite) snapshotter(e env.Env) (env.Snapshotter, error) {
	sn, ok := e.(env.Snapshotter)
	if !ok {
		return nil, noSnapshots
	}
	if err := e.Reset(context.Background(), s.episode(0), env.NewTimeStep(s.spec)); err != nil {
		return nil, err
	}
	if _, err := sn.AppendSnapshot(nil); errors.Is(err, errors.ErrUnsupported) {
		return nil, noSnapshots
	} else if err != nil {
		return nil, fmt.Errorf("AppendSnapshot: %w", err)
	}
	return sn, nil
}

func (s *suite) snapshotsContinueIdentically() error {
	e := s.first()
	saver, err := s.snapshotter(e)
	if err != nil {
		return err
	}
	for k := range min(s.episodes, 2) {
		ep := s.episode(k)
		want, err := s.record(e, ep)
		if err != nil {
			return err
		}
		n := len(want) - 1
		done := map[int]bool{}
		for _, at := range []int{0, 1, 2, n / 3, n / 2, n - 1, n} {
			if at < 0 || at > n || done[at] {
				continue
			}
			done[at] = true
			if err := s.saveAndContinue(e, saver, ep, want, at); err != nil {
				return fmt.Errorf("episode %d saved after %d of %d steps: %w", k, at, n, err)
			}
		}
	}
	return nil
}

func (s *suite) saveAndContinue(e env.Env, saver env.Snapshotter, ep env.Episode, want []digest, at int) error {
	ts, p, err := s.advance(e, ep, at)
	if err != nil {
		return err
	}
	out, err := saver.AppendSnapshot([]byte("head"))
	if err != nil {
		return fmt.Errorf("AppendSnapshot: %w", err)
	}
	blob, headed := bytes.CutPrefix(out, []byte("head"))
	if !headed {
		return errors.New("AppendSnapshot does not append")
	}
	if again, err := saver.AppendSnapshot(nil); err != nil || !bytes.Equal(again, blob) {
		return fmt.Errorf("AppendSnapshot gives other bytes the second time (error %v)", err)
	}
	if err := s.playOn(e, ts, p, follow(want, at)); err != nil {
		return fmt.Errorf("going on after AppendSnapshot: %w", err)
	}

	// Restore once into a new instance, and once into the same one midway through another episode.
	fresh := s.newEnv()
	defer func() { _ = fresh.Close() }()
	restorer, ok := fresh.(env.Snapshotter)
	if !ok {
		return errors.New("some instances have snapshots and some have not")
	}
	for _, state := range []string{"a new instance", "a used instance"} {
		ts := env.NewTimeStep(s.spec)
		litter(ts)
		src := bytes.Clone(blob)
		if err := restorer.RestoreSnapshot(src, ts); err != nil {
			return fmt.Errorf("RestoreSnapshot into %s: %w", state, err)
		}
		clear(src) // the restored state must not refer to the caller's bytes
		if again, err := restorer.AppendSnapshot(nil); err != nil || !bytes.Equal(again, blob) {
			return fmt.Errorf("saved again after RestoreSnapshot into %s, the bytes differ (error %v)", state, err)
		}
		p := s.player(ep.Seed)
		if err := s.skipChoices(p, ep, at); err != nil {
			return err
		}
		if err := s.playOn(fresh, ts, p, follow(want, at)); err != nil {
			return fmt.Errorf("going on from %s: %w", state, err)
		}
		if ts.Kind.Last() {
			if err := refused("Step after the restored end", fresh.Step(context.Background(), s.anyAction(), ts),
				env.ErrResetNeeded, ts, clone(ts)); err != nil {
				return err
			}
		}
		if err := s.repeat(fresh, ep, want); err != nil {
			return fmt.Errorf("reset after RestoreSnapshot into %s: %w", state, err)
		}
		if _, _, err := s.advance(fresh, s.episode(7), 0); err != nil {
			return err
		}
	}
	return nil
}

// skipChoices brings p to the state that ep's player has after n steps.
func (s *suite) skipChoices(p *player, ep env.Episode, n int) error {
	_, q, err := s.advance(s.first(), ep, n)
	if err != nil {
		return err
	}
	*p = *q
	return nil
}

// brokenSnapshotsChangeNothing tries to restore truncated, extended, changed and made-up bytes into an instance midway
// through an episode.
func (s *suite) brokenSnapshotsChangeNothing() error {
	e := s.first()
	victim, err := s.snapshotter(e)
	if err != nil {
		return err
	}
	want, err := s.record(e, s.episode(0))
	if err != nil {
		return err
	}
	at := (len(want) - 1) / 2
	ts, p, err := s.advance(e, s.episode(0), at)
	if err != nil {
		return err
	}
	good, err := victim.AppendSnapshot(nil)
	if err != nil {
		return err
	}
	src := rng.Stream(s.seed, "envtest/hostile")
	b := &breaker{s: s, e: e, sn: victim, good: good, ts: ts}
	for _, c := range hostile(good, src) {
		if err := b.try(c); err != nil {
			return fmt.Errorf("%s of %d bytes: %w", c.what, len(good), err)
		}
	}
	if err := s.playOn(e, ts, p, follow(want, at)); err != nil {
		return fmt.Errorf("going on after broken snapshots: %w", err)
	}
	return nil
}

type blob struct {
	what string
	b    []byte
	must bool // must be refused even without a checksum
}

// hostile lists broken variants of good. It tries every position in a small snapshot and a sample in a large one.
func hostile(good []byte, src *rand.Rand) []blob {
	const sample = 400
	positions := make([]int, 0, sample)
	if len(good) <= sample {
		for i := range good {
			positions = append(positions, i)
		}
	} else {
		for i := range sample / 4 { // the beginning holds versions and lengths, the end holds the checksum
			positions = append(positions, i, len(good)-1-i)
		}
		for len(positions) < sample {
			positions = append(positions, src.IntN(len(good)))
		}
	}
	all := []blob{{"nothing", nil, true}, {"a byte more", append(bytes.Clone(good), 0), true},
		{"twice the snapshot", append(bytes.Clone(good), good...), true}}
	for _, i := range positions {
		all = append(all, blob{fmt.Sprintf("the first %d bytes", i), bytes.Clone(good[:i]), true})
		flipped := bytes.Clone(good)
		flipped[i] ^= 1 << src.IntN(8)
		all = append(all, blob{fmt.Sprintf("a flipped bit in byte %d", i), flipped, false})
		flooded := bytes.Clone(good)
		for k := i; k < min(i+8, len(flooded)); k++ {
			flooded[k] = 0xff
		}
		if !bytes.Equal(flooded, good) {
			all = append(all, blob{fmt.Sprintf("0xff over bytes %d to %d", i, min(i+8, len(good))-1), flooded, false})
		}
	}
	for n := 1; n <= 1<<12; n *= 4 {
		noise := make([]byte, n)
		for i := range noise {
			noise[i] = byte(src.Uint32())
		}
		all = append(all, blob{fmt.Sprintf("%d random bytes instead", n), noise, true})
	}
	return all
}

// maxHostileAlloc is far above what restoring a snapshot allocates, and far below what a hostile length asks for.
const maxHostileAlloc = 256 << 20

type breaker struct {
	s    *suite
	e    env.Env
	sn   env.Snapshotter
	good []byte
	ts   *env.TimeStep
	now  []byte
}

func (k *breaker) try(c blob) error {
	before := digestOf(k.ts)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	allocated := m.TotalAlloc
	err := k.sn.RestoreSnapshot(c.b, k.ts)
	runtime.ReadMemStats(&m)
	if m.TotalAlloc-allocated > maxHostileAlloc {
		return fmt.Errorf("allocated %d MiB", (m.TotalAlloc-allocated)>>20)
	}
	if err == nil {
		if c.must || k.s.sealed {
			return errors.New("was restored without an error")
		}
		return k.accepted()
	}
	if !errors.Is(err, env.ErrSnapshot) {
		return fmt.Errorf("error is %v, want %v", err, env.ErrSnapshot)
	}
	if d := digestOf(k.ts).differs(before); d != nil {
		return fmt.Errorf("the error changed the time step: %w", d)
	}
	if k.now, err = k.sn.AppendSnapshot(k.now[:0]); err != nil || !bytes.Equal(k.now, k.good) {
		return fmt.Errorf("the error changed the environment (error %v)", err)
	}
	return nil
}

// accepted plays on from a state restored from changed bytes, which must keep the contract like any other, and then
// returns to the good one.
func (k *breaker) accepted() error {
	steps := 0
	enough := skip("enough")
	err := k.s.playOn(k.e, clone(k.ts), k.s.player(5), func(ts *env.TimeStep) error {
		if steps++; steps > 50 {
			return enough
		}
		return k.s.spec.Check(ts)
	})
	if err != nil && !errors.Is(err, enough) {
		return fmt.Errorf("was restored without an error, and then: %w", err)
	}
	return k.sn.RestoreSnapshot(k.good, k.ts)
}
