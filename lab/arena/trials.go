package arena

import (
	"context"
	"fmt"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/stream"
	"clustergym/simulator/schedulers"
	"clustergym/traces"
)

// Trials are streams on which rules are compared while a search looks for their weights: draws of the generator or
// stretches of the recorded training part, by number, or the one recorded stream of another part. Its methods are not
// safe for concurrent use.
type Trials struct {
	streams *streams
	seed    uint64 // of the episodes
	local   par.Local[*worker]
}

// Trials returns n draws of the generator for a part, n stretches of the recorded training part, or the recorded stream
// of another part. Draws for the training part are
// tuning draws of cfg.Eval.Seed, apart from those on which policies are validated and tested. What a draw is follows
// from its number, not from n.
func (w *Scenario) Trials(ctx context.Context, cfg *config.Config, part traces.Part, n int) (*Trials, error) {
	own := *cfg
	own.Eval.Streams.Draws = n
	name := map[traces.Part]string{traces.Training: stream.Tuning, traces.Validation: stream.Validation,
		traces.Test: stream.Test}[part]
	var s *streams
	var err error
	if part == traces.Training && !w.Generated() {
		s, err = w.stretches(&own)
	} else {
		s, err = w.streams(ctx, &own, part, name)
	}
	if err != nil {
		return nil, err
	}
	t := &Trials{streams: s, seed: rng.At(cfg.Eval.Seed, rng.Hash(name))}
	settings := w.About.Streamed(w.judged())
	t.local.Make = func() (*worker, error) {
		e, err := w.open(settings, s.source, part)
		if err != nil {
			return nil, err
		}
		seen := &watching{Measure: new(stream.Measure), arena: e.(sched.Arena)}
		if s.blocks != nil {
			seen.bins = s.blocks.Bins
		}
		return &worker{env: e, stream: seen}, nil
	}
	return t, nil
}

// stretches returns stretches of the recorded training part.
func (w *Scenario) stretches(cfg *config.Config) (*streams, error) {
	base, ok := w.Source.Windows.(interface {
		envs.Windows
		sched.Offering
		sched.Foresight
	})
	if !ok {
		return nil, fmt.Errorf("arena: windows of type %T have no streams", w.Source.Windows)
	}
	of, err := stream.Stretches(cfg.Eval.Streams, w.Taken.Windows, cfg.Eval.Seed)
	if err != nil {
		return nil, &fault.Mistake{Err: fmt.Errorf("%s: %w", w.Trace.File, err)}
	}
	src := *w.Source
	src.Windows = &streamed{Windows: base, predicts: base, of: of, offered: base.Offered()}
	return &streams{Streams: of, source: &src}, nil
}

// Log returns whether there is one recorded stream, in place of draws.
func (t *Trials) Log() bool { return t.streams.Log() }

// Units returns how many independent units n draws are: the draws, or the blocks of the recorded stream.
func (t *Trials) Units(n int) int {
	if b := t.streams.blocks; b != nil {
		return b.Bins / b.Length
	}
	return n
}

// Jobs returns how many jobs of a stream count, and how many come before these.
func (t *Trials) Jobs() (counted, warm int) { return t.streams.Counted(), t.streams.Warm() }

// Play plays rules on the draws of the numbers from to before until, or on the recorded stream, on workers goroutines.
// It returns the completion times of the counted jobs of each rule, in seconds: their mean in each draw, or their sum
// in each bin of the recorded stream. They are equal for any number of workers.
func (t *Trials) Play(ctx context.Context, workers int, rules []schedulers.Config, from, until int) ([][]float64,
	error) {
	if t.Log() {
		from, until = 0, 1
	}
	n := until - from
	out := make([][]float64, len(rules))
	for i := range out {
		out[i] = make([]float64, n)
	}
	// Draw by draw, so that few draws are in memory at a time.
	err := t.local.For(ctx, workers, n*len(rules), func(s *worker, i int) error {
		k, at := i%len(rules), i/len(rules)
		p, err := schedulers.New(rules[k])
		if err != nil {
			return err
		}
		ep := env.Episode{Seed: env.EpisodeSeed(t.seed, from+at), Window: from + at}
		p.Reseed(ep.Seed)
		s.stream.Reset()
		if err := s.env.(sched.Arena).Simulate(ctx, ep, p, s.stream); err != nil {
			return fmt.Errorf("%s on stream %d: %w", p.Name(), ep.Window, err)
		}
		got := summedUp(s.stream.Measure, s.env.(interface{ Window() *sched.Window }).Window())
		if !t.Log() {
			out[k][at] = got.mean(summed("jct"))
			return nil
		}
		out[k] = make([]float64, len(got.Bins))
		for b := range got.Bins {
			out[k][b] = got.Bins[b].JCT
		}
		return nil
	})
	return out, err
}

// Mean returns the mean completion time of the counted jobs, in seconds, of what Play returned for a rule.
func (t *Trials) Mean(played []float64) float64 {
	if !t.Log() {
		return statistic.Mean(played)
	}
	sum := 0.0
	for _, x := range played {
		sum += x
	}
	return sum / float64(t.streams.Counted())
}

// Compare compares two rules by what Play returned for each.
func (t *Trials) Compare(nameA, nameB string, a, b []float64) statistic.Replicated {
	if bl := t.streams.blocks; bl != nil {
		return statistic.CompareBlocks(t.seed, nameA, nameB, "jct", a, b, bl.Length, false)
	}
	return statistic.CompareReplications(nameA, nameB, "jct", a, b, false)
}
