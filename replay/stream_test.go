package replay

import (
	"math/rand/v2"
	"time"

	"clustergym/env"
)

// testSpec has two observations, three actions and a discount per hour.
func testSpec() env.Spec {
	return env.Spec{
		ID:     "Test-v1",
		Obs:    []env.Field{{Name: "x", Shape: []int{2}, Low: -1e9, High: 1e9}},
		Action: env.ActionSpec{Sizes: []int{3}},
		Tau:    time.Hour,
	}
}

// mode is how a row continues after the end of its episode.
type mode int

const (
	sameStep mode = iota
	nextStep
	disabled
)

// stream plays made-up environments: every observation is unique, so that a transition in a buffer can be compared
// with the one that was played. It records every transition as it happened.
type stream struct {
	spec env.Spec
	mode mode
	rng  *rand.Rand
	b    *env.Batch // the current batch
	next *env.Batch
	a    *env.Actions
	tick float32

	rows  [][]step // per row: steps of the current episode
	ended [][][]step
}

// step is one played transition with everything that a buffer may need to know about it.
type step struct {
	obs, next          [2]float32
	mask, nextMask     [3]bool
	act                int32
	reward             float64
	discount           float64
	terminated, closed bool
	at                 int // index of the call that it was part of
}

func newStream(rows int, m mode, rng *rand.Rand) *stream {
	s := &stream{spec: testSpec(), mode: m, rng: rng}
	s.b, s.next = env.NewBatch(s.spec, rows), env.NewBatch(s.spec, rows)
	s.a = env.NewActions(s.spec, rows)
	s.rows, s.ended = make([][]step, rows), make([][][]step, rows)
	for i := 0; i < rows; i++ {
		s.fill(s.b, i)
		s.b.Kind[i] = env.First
	}
	return s
}

// fill writes a new observation and a mask with a legal action to row i.
func (s *stream) fill(b *env.Batch, i int) {
	s.tick++
	b.Obs[2*i], b.Obs[2*i+1] = s.tick, float32(i)
	s.mask(b.Mask[3*i : 3*i+3])
}

func (s *stream) mask(m []bool) {
	for k := range m {
		m[k] = s.rng.IntN(2) == 0
	}
	m[s.rng.IntN(3)] = true
}

// play makes one step of all rows. Afterwards s.b, s.a and s.next are what a trainer would pass to an observer; call
// turn before the next step.
func (s *stream) play(call int) {
	n := s.next
	n.FinalRows, n.FinalObs, n.FinalMask = n.FinalRows[:0], n.FinalObs[:0], n.FinalMask[:0]
	for i := 0; i < s.b.N; i++ {
		s.a.Disc[i] = int32(s.rng.IntN(3))
		s.fill(n, i)
		if s.mode == nextStep && s.b.Kind[i].Last() {
			n.Kind[i], n.Reward[i], n.Elapsed[i] = env.First, 0, 0
			continue
		}
		n.Kind[i] = env.Mid
		switch s.rng.IntN(6) {
		case 0:
			n.Kind[i] = env.Terminated
		case 1:
			n.Kind[i] = env.Truncated
		}
		n.Reward[i] = s.rng.NormFloat64()
		n.Elapsed[i] = time.Duration(s.rng.IntN(4)) * 20 * time.Minute
		t := step{act: s.a.Disc[i], reward: n.Reward[i], closed: n.Kind[i].Last(), terminated: n.Kind[i] == env.Terminated,
			at: call}
		copy(t.obs[:], s.b.Obs[2*i:])
		copy(t.mask[:], s.b.Mask[3*i:])
		copy(t.next[:], n.Obs[2*i:])
		copy(t.nextMask[:], n.Mask[3*i:])
		if t.closed && s.mode == sameStep {
			n.FinalRows = append(n.FinalRows, i)
			n.FinalObs = append(n.FinalObs, t.next[:]...)
			n.FinalMask = append(n.FinalMask, t.nextMask[:]...)
			s.fill(n, i) // the next episode's first observation
		}
		if !t.terminated {
			t.discount = s.spec.Discount(0.9, n.Elapsed[i])
		}
		s.rows[i] = append(s.rows[i], t)
		if t.closed {
			s.ended[i] = append(s.ended[i], s.rows[i])
			s.rows[i] = nil
		}
	}
}

// turn makes s.next the current batch.
func (s *stream) turn() {
	s.b, s.next = s.next, s.b
	if s.mode == disabled {
		for i, k := range s.b.Kind {
			if k.Last() {
				s.fill(s.b, i)
				s.b.Kind[i], s.b.Reward[i], s.b.Elapsed[i] = env.First, 0, 0
			}
		}
	}
}

// transition is an n-step transition as a buffer should store it.
type transition struct {
	obs, next        [2]float32
	mask, nextMask   [3]bool
	act              int32
	reward, discount float32
}

// reference returns every n-step transition that the calls to add have completed, in the order of storing: by call,
// then by row, then oldest first. It is computed directly from the definition, one transition at a time.
func (s *stream) reference(n, calls int) []transition {
	type keyed struct {
		call, row int
		transition
	}
	var all []keyed
	for i := range s.rows {
		for _, ep := range append(append([][]step(nil), s.ended[i]...), s.rows[i]) {
			for k := range ep {
				end := k + n - 1
				if end >= len(ep) {
					end = len(ep) - 1
					if !ep[end].closed {
						break // still waiting
					}
				}
				t := transition{obs: ep[k].obs, mask: ep[k].mask, act: ep[k].act, next: ep[end].next, nextMask: ep[end].nextMask}
				sum, prod := 0.0, 1.0
				for j := k; j <= end; j++ {
					sum += prod * ep[j].reward
					prod *= ep[j].discount
				}
				t.reward, t.discount = float32(sum), float32(prod)
				all = append(all, keyed{ep[end].at, i, t})
			}
		}
	}
	var out []transition
	for c := 0; c < calls; c++ {
		for i := range s.rows {
			for _, k := range all {
				if k.call == c && k.row == i {
					out = append(out, k.transition)
				}
			}
		}
	}
	return out
}
