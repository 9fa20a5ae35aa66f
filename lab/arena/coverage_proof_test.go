package arena

import (
	"context"
	"fmt"
	"math"
	"testing"

	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/internal/testseed"
	"clustergym/lab/config"
	"clustergym/lab/report"
)

// sampled is a workload whose evaluations are repeated with other draws.
type sampled struct {
	profile string
	load    float64
	jobs    int // counted in a draw, after as many
	knows   string
}

func (s sampled) config(t *testing.T, policies string, draws, jobs int) *config.Config {
	t.Helper()
	m := machines[s.profile]
	return proving(t, policies, fmt.Sprintf("cluster=%s trace.synth.profile=%s env.max_gpus=%d trace.synth.jobs=20000 "+
		"env.load=%g env.estimates=%s env.comm=none eval.streams.draws=%d eval.streams.jobs=%d eval.streams.warm=%d", m.cluster,
		s.profile, m.most, s.load, s.knows, draws, jobs, jobs))
}

// The 95 % intervals of evaluations with 16 draws hold the difference that a run of two million jobs has in 95 % of
// evaluations, and what chance adds to a count of evaluations.
func TestIntervalsHoldTheLongRun(t *testing.T) {
	seed := testseed.Or(1)
	times, long := either(60, 400), either(10, 100)
	t.Logf("seed %d, %d evaluations, a run of %d jobs", seed, times, long*20_000)
	of := []sampled{{"poisson-hyper", .9, 200, "exact"}}
	if full() {
		of = []sampled{{"poisson-hyper", .9, 1000, "exact"}, {"dally-multi", .9, 1000, "history"}, {"hpc", .7, 1000, "history"}}
	}
	for _, s := range of {
		cfg := s.config(t, "sjf+skip,fifo+skip,hold", 16, s.jobs)
		w, err := NewScenario(cfg)
		if err != nil {
			t.Fatal(err)
		}
		truth := s.config(t, "sjf+skip,fifo+skip,hold", long, 20_000)
		truth.Eval.Seed = rng.At(seed, rng.Hash("long run"))
		known := evaluated(t, truth, w)
		for i, a := range []string{"fifo+skip", "hold"} {
			t.Logf("`%s` at %g: `%s` vs `sjf+skip` %+.2f [%+.2f, %+.2f] %%", s.profile, s.load, a, known.Paired[i].Difference,
				known.Paired[i].CI95[0], known.Paired[i].CI95[1])
		}
		var inside, below [2]int
		for k := range times {
			cfg.Eval.Seed = rng.At(seed, uint64(k))
			r := evaluated(t, cfg, w)
			for i := range r.Paired {
				d, ci := float64(known.Paired[i].Difference), r.Paired[i].CI95
				if ci[0] <= d && d <= ci[1] {
					inside[i]++
				} else if ci[1] < d {
					below[i]++
				}
			}
		}
		for i, a := range []string{"fifo+skip", "hold"} {
			share := float64(inside[i]) / float64(times)
			t.Logf("| `%s` at %g | `%s` vs `sjf+skip` | %.1f %% | %d below, %d above |", s.profile, s.load, a, 100*share, below[i],
				times-inside[i]-below[i])
			off := 3 * math.Sqrt(.95*.05/float64(times)) // what chance adds: three standard errors
			if math.Abs(share-.95) > off {
				t.Errorf("%s: %d of %d intervals of %s hold the long run, want 95 ± %.1f %%", s.profile, inside[i], times, a,
					100*off)
			}
		}
	}
}

// A policy is put ahead of or behind any of nine rivals that are itself, with other random numbers, in 5 % of
// evaluations or fewer.
func TestAPolicyIsSeldomAheadOfItself(t *testing.T) {
	const rivals = 9
	seed := testseed.Or(1)
	times := either(40, 400)
	t.Logf("seed %d, %d evaluations", seed, times)
	for _, s := range []sampled{{"poisson-hyper", .9, either(150, 1000), "exact"}, {"dally-multi", .9, 1000, "exact"}} {
		if s.profile != "poisson-hyper" && !full() {
			continue
		}
		cfg := s.config(t, "random+skip", 16, s.jobs)
		w, err := NewScenario(cfg)
		if err != nil {
			t.Fatal(err)
		}
		alarms, apart := 0, 0
		for k := range times {
			cfg.Eval.Seed, cfg.Eval.Seeds = rng.At(seed, uint64(k)), 1
			r, err := w.testing(t.Context(), cfg, &EvalOptions{Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			itself := r.policies[0]
			r.policies = nil
			for i := range rivals + 1 {
				r.policies = append(r.policies, reseeded(itself, uint64(i)))
			}
			played, _, err := r.results(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			a, p := verdicts(r.streamReport(played))
			apart += p
			if a {
				alarms++
			}
		}
		share, pairs := float64(alarms)/float64(times), float64(apart)/float64(times*rivals)
		t.Logf("| `%s` at %g | %d of %d, %.1f %% | %.1f %% |", s.profile, s.load, alarms, times, 100*share, 100*pairs)
		// 5 % and what chance adds to it: three standard errors.
		if most := .05 + 3*math.Sqrt(.05*.95/float64(times)); share > most {
			t.Errorf("%s: in %d of %d evaluations a policy is ahead of itself, or behind", s.profile, alarms, times)
		}
	}
}

// reseeded returns p under another name, with other random numbers.
func reseeded(p policy, i uint64) policy {
	inner := p.player
	p.name = fmt.Sprintf("%s/%d", p.name, i)
	p.player = func(e env.Env) (player, error) {
		play, err := inner(e)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, ep env.Episode, seed uint64, seen audience) (outcome, error) {
			return play(ctx, ep, rng.At(seed, i), seen)
		}, nil
	}
	return p
}

// verdicts returns whether any policy is ahead or behind, and how many intervals exclude zero.
func verdicts(r *report.StreamReport) (any bool, apart int) {
	for i := range r.Paired {
		p := &r.Paired[i]
		any = any || p.Verdict == statistic.Ahead || p.Verdict == statistic.Behind
		if p.CI95[0] > 0 || p.CI95[1] < 0 {
			apart++
		}
	}
	return any, apart
}
