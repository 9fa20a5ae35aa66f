package arena

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
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

// policies are those that are compared: the first with each other one.
func (s sampled) policies() []string {
	if machines[s.profile].most == 1 { // hold is SJF where all jobs have one GPU
		return []string{"sjf+skip", "fifo+skip"}
	}
	return []string{"sjf+skip", "fifo+skip", "hold"}
}

// config is an evaluation of draws of so many jobs after as many.
func (s sampled) config(t *testing.T, draws, jobs int) *config.Config {
	t.Helper()
	m := machines[s.profile]
	return proving(t, strings.Join(s.policies(), ","),
		fmt.Sprintf("cluster=%s trace.synth.profile=%s env.max_gpus=%d trace.synth.jobs=20000 "+
			"env.load=%g env.estimates=%s env.comm=none eval.streams.draws=%d eval.streams.jobs=%d eval.streams.warm=%d",
			m.cluster,
			s.profile, m.most, s.load, s.knows, draws, jobs, jobs))
}

// coverage counts the intervals of a comparison that hold a difference in percent.
type coverage struct{ inside, below, above int }

func (c *coverage) add(ci statistic.Interval, difference float64) {
	switch {
	case ci[1] < difference:
		c.below++
	case ci[0] > difference:
		c.above++
	default:
		c.inside++
	}
}

func (c *coverage) share() float64 { return float64(c.inside) / float64(c.inside+c.below+c.above) }

func (c *coverage) String() string {
	return fmt.Sprintf("%.1f %% (%d below, %d above)", 100*c.share(), c.below, c.above)
}

// The 95 % intervals of evaluations with 16 draws hold the difference that a run of two million jobs has, after a long
// warm-up, in 95 % of evaluations and what chance adds to a count of evaluations. The full form also prints how many
// hold the difference of all evaluations together: what the long run has less of is due to the warm-up, the rest to the
// interval.
func TestIntervalsHoldTheLongRun(t *testing.T) {
	unraced(t)
	const seed = 1
	times, long := either(30, 200), either(20, 100)
	t.Logf("seed %d, %d evaluations, a run of %d jobs", seed, times, long*20_000)
	of := []sampled{{"poisson-hyper", .7, 500, "exact"}}
	if full() {
		of = []sampled{{"poisson-hyper", .9, 2000, "exact"}, {"dally-multi", .9, 2000, "history"}, {"hpc", .7, 2000,
			"history"}, {"philly-users", .6, 2000, "history"}}
	}
	for _, s := range of {
		t.Run(s.profile, func(t *testing.T) { covers(t, s, times, long, seed) })
	}
}

func covers(t *testing.T, s sampled, times, long int, seed uint64) {
	t.Helper()
	cfg, truth := s.config(t, 16, s.jobs), s.config(t, long, 20_000)
	w, err := NewScenario(cfg)
	if err != nil {
		t.Fatal(err)
	}
	truth.Eval.Seed = rng.At(seed, rng.Hash("long run"))
	known := evaluated(t, truth, w)
	all := make([]*report.StreamReport, times)
	sums := make([]float64, len(known.Policies))
	for k := range all {
		cfg.Eval.Seed = rng.At(seed, uint64(k))
		all[k] = evaluated(t, cfg, w)
		for i := range sums {
			sums[i] += float64(all[k].Policies[i].Metrics.JCT.Mean)
		}
	}
	for i := range known.Paired {
		p := &known.Paired[i]
		together := 100 * (sums[i+1]/sums[0] - 1)
		var ofLong, ofAll coverage
		for _, r := range all {
			ofLong.add(r.Paired[i].CI95, float64(p.Difference))
			ofAll.add(r.Paired[i].CI95, together)
		}
		t.Logf("| `%s` at %g | `%s` vs `%s` | %+.1f [%+.1f, %+.1f] | %v | %+.1f | %v |", s.profile, s.load, p.A, p.B,
			p.Difference, p.CI95[0], p.CI95[1], &ofLong, together, &ofAll)
		off := 3 * math.Sqrt(.95*.05/float64(times))
		settles := s.profile != "philly-users" || p.A != "fifo+skip" // whose queue remembers more than a draw has
		if math.Abs(ofLong.share()-.95) > off && settles {
			t.Errorf("%s: %v of the intervals of %s hold the long run, want 95 ± %.1f %%", s.profile, &ofLong, p.A, 100*off)
		}
	}
}

// A policy is put ahead of or behind any of nine rivals that are itself, with other random numbers, in 5 % of
// evaluations or fewer.
func TestAPolicyIsSeldomAheadOfItself(t *testing.T) {
	const rivals = 9
	unraced(t)
	const seed = 1
	times := either(40, 200)
	t.Logf("seed %d, %d evaluations", seed, times)
	for _, s := range []sampled{{"poisson-hyper", .9, either(150, 500), "exact"}, {"dally-multi", .9, 500, "exact"}} {
		if s.profile != "poisson-hyper" && !full() {
			continue
		}
		cfg := s.config(t, 16, s.jobs)
		cfg.Eval.Policies = []string{"random+skip"}
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
func verdicts(r *report.StreamReport) (some bool, apart int) {
	for i := range r.Paired {
		p := &r.Paired[i]
		some = some || p.Verdict == statistic.Ahead || p.Verdict == statistic.Behind
		if p.CI95[0] > 0 || p.CI95[1] < 0 {
			apart++
		}
	}
	return some, apart
}
