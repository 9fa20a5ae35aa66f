package rlscheduler

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/internal/fault"
	"clustergym/internal/par"
	"clustergym/internal/rng"
)

// TuneConfig says how long a Linear key is looked for.
type TuneConfig struct {
	Starts      int `yaml:"starts"`      // independent searches, of which the best is taken
	Generations int `yaml:"generations"` // of each
	Population  int `yaml:"population"`  // keys in a generation
	Windows     int `yaml:"windows"`     // in which a generation is compared
	Length      int `yaml:"length"`      // jobs of such a window
}

// Validate reports every value that is out of range.
func (c *TuneConfig) Validate() error {
	var l fault.List
	l.Add(c.Starts >= 1 && c.Starts <= 1000, "starts", c.Starts, "1 to 1000")
	l.Add(c.Generations >= 1 && c.Generations <= 100000, "generations", c.Generations, "1 to 100000")
	l.Add(c.Population >= 4 && c.Population <= 10000, "population", c.Population, "4 to 10000")
	l.Add(c.Windows >= 1 && c.Windows <= 10000, "windows", c.Windows, "1 to 10000")
	l.Add(c.Length >= 2 && c.Length <= 100000, "length", c.Length, "2 to 100000 jobs")
	return l.Err()
}

// Tune looks for the Linear key of the least bounded slowdown, by the cross-entropy method (Rubinstein 1999): keys are
// drawn from a normal distribution, played in the same windows of jobs, drawn at random for each generation, and the
// distribution moves half of the way to the best quarter. What counts is the mean logarithm of a window's bounded
// slowdown, so that a few windows do not decide. Every tenth generation's mean is played in forty windows all over
// jobs; the key of the least mean bounded slowdown there is the result. The result is the same for any number of
// workers.
func Tune(ctx context.Context, procs int, backfill bool, jobs []Job, cfg TuneConfig, seed uint64,
	workers int) (Linear, error) {
	mean, deviation := make([]float64, Traits), make([]float64, Traits)
	mean[0], mean[1] = 1, 1
	for k := range deviation {
		deviation[k] = 0.7
	}
	key, err := tuneAll(ctx, procs, backfill, jobs, &cfg, seed, workers, "rlscheduler/tune", mean, deviation,
		func(m *Machine, key []float64) func(jobs []Job) float64 {
			p := NewKeyed((*Linear)(key))
			return func(jobs []Job) float64 { return PlayKeyed(m, p, jobs) }
		})
	if err != nil {
		return Linear{}, err
	}
	return Linear(key), nil
}

// TuneState looks for the StateKey of the least bounded slowdown as Tune does, from the key that Tune has found: its
// weights and those of the state are drawn together.
func TuneState(ctx context.Context, procs int, backfill bool, jobs []Job, from Linear, cfg TuneConfig, seed uint64,
	workers int) (StateKey, error) {
	const n = Traits + StateTraits
	mean, deviation := make([]float64, n), make([]float64, n)
	copy(mean, from[:])
	for k := range deviation {
		deviation[k] = 0.3
	}
	key, err := tuneAll(ctx, procs, backfill, jobs, &cfg, seed, workers, "rlscheduler/tune-state", mean, deviation,
		func(m *Machine, key []float64) func(jobs []Job) float64 {
			p := NewStated(stateKey(key))
			return func(jobs []Job) float64 { return PlayStated(m, p, jobs) }
		})
	if err != nil {
		return StateKey{}, err
	}
	return *stateKey(key), nil
}

func stateKey(x []float64) *StateKey {
	return &StateKey{Job: Linear(x[:Traits]), State: [StateTraits]float64(x[Traits:])}
}

// player returns how a key plays a window of jobs on a machine.
type player = func(m *Machine, key []float64) func(jobs []Job) float64

// tuneAll runs the searches and returns the best key.
func tuneAll(ctx context.Context, procs int, backfill bool, jobs []Job, cfg *TuneConfig, seed uint64, workers int,
	stream string,
	mean, deviation []float64, play player) ([]float64, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(jobs) < cfg.Length {
		return nil, fmt.Errorf("rlscheduler: %d jobs to tune a key on, want a window of %d", len(jobs), cfg.Length)
	}
	type found struct {
		key   []float64
		score float64
	}
	best := make([]found, cfg.Starts)
	err := par.For(ctx, workers, cfg.Starts, func(_, i int) error {
		r := rng.Stream(rng.At(seed, uint64(i)), stream)
		best[i].score = math.Inf(1)
		m := NewMachine(procs, backfill)
		return tune(ctx, m, jobs, cfg, r, slices.Clone(mean), slices.Clone(deviation), play, func(key []float64) {
			if s := spread(play(m, key), jobs, cfg.Length); s < best[i].score {
				best[i] = found{slices.Clone(key), s}
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return slices.MinFunc(best, func(a, b found) int { return cmp.Compare(a.score, b.score) }).key, nil
}

// spread returns the mean bounded slowdown in forty windows all over jobs.
func spread(play func(jobs []Job) float64, jobs []Job, length int) float64 {
	const windows = 40
	sum := 0.0
	for i := range windows {
		from := i * (len(jobs) - length) / (windows - 1)
		sum += play(jobs[from : from+length])
	}
	return sum / windows
}

// tune moves mean and deviation, and calls look with the mean of every tenth generation. It is not internal/cem, whose
// sums are added in another order: the last bits of a key, and so published figures, would change.
func tune(ctx context.Context, m *Machine, jobs []Job, cfg *TuneConfig, r *rand.Rand, mean, deviation []float64,
	play player, look func(key []float64)) error {
	type drawn struct {
		key  []float64
		cost float64
	}
	all, from := make([]drawn, cfg.Population), make([]int, cfg.Windows)
	for i := range all {
		all[i].key = make([]float64, len(mean))
	}
	for g := range cfg.Generations {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range from {
			from[i] = r.IntN(len(jobs) - cfg.Length + 1)
		}
		for i := range all {
			d := &all[i]
			copy(d.key, mean)
			d.cost = 0
			if i > 0 { // the first is the mean itself
				for k := range d.key {
					d.key[k] += deviation[k] * r.NormFloat64()
				}
			}
			p := play(m, d.key)
			for _, at := range from {
				d.cost += math.Log(p(jobs[at : at+cfg.Length]))
			}
		}
		slices.SortStableFunc(all, func(a, b drawn) int { return cmp.Compare(a.cost, b.cost) })
		elite := all[:cfg.Population/4]
		for k := range mean {
			sum, squares := 0.0, 0.0
			for i := range elite {
				sum += elite[i].key[k]
				squares += elite[i].key[k] * elite[i].key[k]
			}
			n := float64(len(elite))
			mean[k] = (mean[k] + sum/n) / 2
			deviation[k] = max(0.01, 0.7*deviation[k]+0.3*math.Sqrt(max(0, squares/n-sum/n*sum/n)))
		}
		if (g+1)%10 == 0 || g+1 == cfg.Generations {
			look(mean)
		}
	}
	return nil
}
