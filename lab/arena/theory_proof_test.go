package arena

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"clustergym/env/sched"
	"clustergym/lab/config"
	"clustergym/simulator/schedulers/attained"
	"clustergym/traces/synth"
)

// runTimes is a mixture of exponential distributions with a mean of 1, or constant ones of 1 if it is empty.
type runTimes []phase

// phase is an exponential distribution with the rate of a share of the jobs.
type phase struct{ share, rate float64 }

// distributions are those of the profiles of traces/synth.
var distributions = map[string]runTimes{
	"poisson": {{1, 1}}, "poisson-constant": nil,
	"poisson-hyper": {{synth.HyperShare, 2 * synth.HyperShare}, {1 - synth.HyperShare, 2 * (1 - synth.HyperShare)}},
}

// second returns E[S²].
func (d runTimes) second() float64 {
	sum := 0.0
	for _, p := range d {
		sum += p.share * 2 / (p.rate * p.rate)
	}
	if d == nil {
		return 1
	}
	return sum
}

// tail returns P(S > x), density its density, part E[S; S ≤ x], part2 E[S²; S ≤ x].
func (d runTimes) tail(x float64) (sum float64) {
	for _, p := range d {
		sum += p.share * math.Exp(-p.rate*x)
	}
	return sum
}

func (d runTimes) density(x float64) (sum float64) {
	for _, p := range d {
		sum += p.share * p.rate * math.Exp(-p.rate*x)
	}
	return sum
}

func (d runTimes) part(x float64) (sum float64) {
	for _, p := range d {
		sum += p.share * (1/p.rate - math.Exp(-p.rate*x)*(x+1/p.rate))
	}
	return sum
}

func (d runTimes) part2(x float64) (sum float64) {
	for _, p := range d {
		m := 1 / p.rate
		sum += p.share * (2*m*m - math.Exp(-p.rate*x)*(x*x+2*x*m+2*m*m))
	}
	return sum
}

// cut returns E[min(S, x)] and E[min(S, x)²].
func (d runTimes) cut(x float64) (first, second float64) {
	if math.IsInf(x, 1) {
		return 1, d.second()
	}
	return d.part(x) + x*d.tail(x), d.part2(x) + x*x*d.tail(x)
}

// over integrates f(x) times the density of d over all run times, by Simpson's rule.
func (d runTimes) over(f func(x float64) float64) float64 {
	const steps = 200_000
	most := 0.0
	for _, p := range d {
		most = max(most, 45/p.rate) // beyond it lies less than e^−45
	}
	h, sum := most/steps, 0.0
	for i := range steps + 1 {
		weight := 2 + 2*float64(i%2)
		if i == 0 || i == steps {
			weight = 1
		}
		x := float64(i) * h
		sum += weight * f(x) * d.density(x)
	}
	return sum * h / 3
}

// erlangC is the mean wait of FIFO on c GPUs with exponential run times of mean 1 (Erlang 1917; Kleinrock 1975,
// "Queueing Systems", vol. 1, section 3.5). The probability of waiting comes from Erlang's B by its recursion in c.
func erlangC(c int, rho float64) float64 {
	a, b := rho*float64(c), 1.0
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	waits := b / (1 - rho*(1-b))
	return waits / (float64(c) * (1 - rho))
}

// pollaczekKhinchine is the mean wait of FIFO on one GPU (Pollaczek 1930, Khinchine 1932; Kleinrock 1975, vol. 1,
// section 5.6). With a mean run time of 1, the rate of arrivals is rho.
func (d runTimes) pollaczekKhinchine(rho float64) float64 { return rho * d.second() / (2 * (1 - rho)) }

// phipps is the mean wait of the shortest job first, without preemption (Phipps 1956, "Machine repair as a priority
// waiting-line problem", Operations Research 4(1); Conway, Maxwell and Miller 1967, "Theory of Scheduling", section
// 8-6): ∫ ½λE[S²]/(1 − λE[S; S ≤ x])² dF(x).
func (d runTimes) phipps(rho float64) float64 {
	return d.over(func(x float64) float64 {
		free := 1 - rho*d.part(x)
		return rho * d.second() / 2 / (free * free)
	})
}

// schrageMiller is the mean time in the system of the shortest remaining time first (Schrage and Miller 1966, "The
// queue M/G/1 with the shortest remaining processing time discipline", Operations Research 14(4)): over run times x,
// λE[min(S, x)²]/(2(1 − ρ(x))²) + ∫₀ˣ dt/(1 − ρ(t)), where ρ(x) = λE[S; S ≤ x].
func (d runTimes) schrageMiller(rho float64) float64 {
	waiting := d.over(func(x float64) float64 {
		_, second := d.cut(x)
		free := 1 - rho*d.part(x)
		return rho * second / (2 * free * free)
	})
	// ∫ f(x) ∫₀ˣ g(t) dt dx = ∫ P(S > t)·g(t) dt, and the density of over is divided out.
	return waiting + d.over(func(t float64) float64 { return d.tail(t) / d.density(t) / (1 - rho*d.part(t)) })
}

// levels is the mean time in the system of least attained service in queues with limits, first come first served in
// each (Kleinrock 1976, "Queueing Systems", vol. 2, section 4.7): a job whose run time x ends in the queue from a to b
// needs (λE[min(S, b)²]/(2(1 − λE[min(S, b)])) + x)/(1 − λE[min(S, a)]).
func (d runTimes) levels(rho float64, limits []float64) float64 {
	limits = append(slices.Clone(limits), math.Inf(1))
	return d.over(func(x float64) float64 {
		i, _ := slices.BinarySearch(limits, x)
		before := 0.0
		if i > 0 {
			before, _ = d.cut(limits[i-1])
		}
		first, second := d.cut(limits[i])
		return (rho*second/(2*(1-rho*first)) + x) / (1 - rho*before)
	})
}

// The formulas agree with others that are known: for exponential run times all policies that know none have the same
// mean time in the system, 1/(1−ρ), and one GPU is the case c = 1 of Erlang's formula.
func TestTheoryAgreesWithItself(t *testing.T) {
	m := distributions["poisson"]
	for _, rho := range []float64{.5, .7, .9} {
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"Erlang C of one GPU", erlangC(1, rho), rho / (1 - rho)},
			{"Pollaczek-Khinchine", m.pollaczekKhinchine(rho), rho / (1 - rho)},
			{"queues without limits", m.levels(rho, nil), 1 / (1 - rho)},
			{"queues with limits", m.levels(rho, []float64{.5, 2}), 1 / (1 - rho)},
			{"share of jobs", m.over(func(float64) float64 { return 1 }), 1},
			{"mean run time", distributions["poisson-hyper"].over(func(x float64) float64 { return x }), 1},
			{"E[S²]", distributions["poisson-hyper"].over(func(x float64) float64 { return x * x }), 5},
		} {
			if math.Abs(c.got-c.want) > 1e-4*c.want { // a limit within a step of Simpson's rule costs that much
				t.Errorf("load %g: %s is %.8f, want %.8f", rho, c.what, c.got, c.want)
			}
		}
	}
	// Erlang C by its sum, for two servers: a²/(2(1−ρ)) / (1 + a + a²/(2(1−ρ))), over 2(1−ρ).
	if a := 1.4; math.Abs(erlangC(2, .7)-(a*a/.6)/(1+a+a*a/.6)/.6) > 1e-12 {
		t.Errorf("Erlang C of two GPUs %.6f", erlangC(2, .7))
	}
}

// law is what theory says of a policy: of its mean wait, or of its mean time in the system.
type law struct {
	policy, name string
	jct          bool
	of           func(d runTimes, c int, rho float64) float64
}

// The laws by workload.
func lawsOf(profile string, gpus int) []law {
	var limits []float64
	for _, l := range attained.DefaultLevels().Limits {
		limits = append(limits, l.Hours())
	}
	fifo := law{"fifo+skip", "Pollaczek-Khinchine", false,
		func(d runTimes, _ int, rho float64) float64 { return d.pollaczekKhinchine(rho) }}
	switch {
	case gpus > 1:
		return []law{{"fifo+skip", "Erlang C", false,
			func(_ runTimes, c int, rho float64) float64 { return erlangC(c, rho) }}}
	case profile == "poisson-constant":
		return []law{fifo}
	}
	return []law{fifo,
		{"sjf+skip", "Phipps", false, func(d runTimes, _ int, rho float64) float64 { return d.phipps(rho) }},
		{"srtf+skip", "Schrage-Miller", true, func(d runTimes, _ int, rho float64) float64 { return d.schrageMiller(rho) }},
		{"las+skip", "Kleinrock's levels", true,
			func(d runTimes, _ int, rho float64) float64 { return d.levels(rho, limits) }},
	}
}

// ownLoad returns the load for which the generator of cfg is taken at its own rate.
func ownLoad(t *testing.T, cfg *config.Config) float64 {
	t.Helper()
	own := *cfg
	if err := own.Set("env.load=0"); err != nil {
		t.Fatal(err)
	}
	own.Edit()
	w, err := NewScenario(&own)
	if err != nil {
		t.Fatal(err)
	}
	return w.Source.Windows.(sched.Offering).Offered()
}

// Mean waits of evaluations are those of queueing theory, each within its 99 % interval over draws.
func TestWaitsAreThoseOfQueueingTheory(t *testing.T) {
	unraced(t)
	const seed = 1
	draws, jobs, warm := either(16, 400), either(2500, 20_000), either(3000, 10_000)
	t.Logf("seed %d, %d draws of %d counted jobs", seed, draws, jobs)
	for _, c := range []struct {
		profile string
		gpus    int
	}{{"poisson", 1}, {"poisson", 4}, {"poisson", 32}, {"poisson-constant", 1}, {"poisson-hyper", 1}} {
		for _, load := range []float64{.5, .7, .9} {
			if c.gpus == 32 && load == .5 && !full() {
				continue // one job of ten thousand waits
			}
			laws := lawsOf(c.profile, c.gpus)
			names := ""
			for _, l := range laws {
				names += l.policy + ","
			}
			cfg := proving(t, names, fmt.Sprintf("cluster=pool:%d trace.synth.profile=%s trace.synth.jobs=8000 env.max_gpus=1 "+
				"env.estimates=exact env.load=%g eval.seed=%d eval.streams.draws=%d eval.streams.jobs=%d eval.streams.warm=%d",
				c.gpus, c.profile, load, seed, draws, jobs, warm))
			w, err := NewScenario(cfg)
			if err != nil {
				t.Fatal(err)
			}
			d := distributions[c.profile]
			// The generator's rate follows from the load that 16 draws of 16,384 jobs have at its own rate, at which the true load
			// is 1 job an hour. So the load that is played differs a little from the one that was asked for.
			factor := ownLoad(t, cfg) * float64(c.gpus)
			rho := load / factor
			if noise := math.Sqrt(d.second()/(16*16384)) * 3.3; math.Abs(factor-1) > noise {
				t.Errorf("%s: the generator's load is taken for %.4f of the true one, want 1 ± %.4f", c.profile, factor, noise)
			}
			r := evaluated(t, cfg, w)
			n := float64(draws * jobs)
			if noise := rho * math.Sqrt(d.second()/n) * 3.3; math.Abs(r.Load.Offered-rho) > noise {
				t.Errorf("%s: the counted jobs offer %.4f, want %.4f ± %.4f", c.profile, r.Load.Offered, rho, noise)
			}
			for _, l := range laws {
				m := metricsOf(t, r, l.policy)
				per := m.Wait.Per
				if l.jct {
					per = m.JCT.Per
				}
				mean, half := meanWithin(per, .99)
				mean, half = mean/3600, half/3600
				theory := l.of(d, c.gpus, rho)
				out := ""
				if math.Abs(mean-theory) > half {
					out = "OUTSIDE"
					t.Errorf("%s on %d GPUs, load %g, %s: %.4f ± %.4f h, by theory %.4f h (%s)", c.profile, c.gpus, load,
						l.policy, mean, half, theory, l.name)
				}
				t.Logf("| `%s`, %d | %g | `%s` | %s | %.4g | %.4g ± %.2g | %+.1f ± %.1f %% |%s", c.profile, c.gpus, load,
					l.policy, l.name, theory, mean, half, 100*(mean/theory-1), 100*half/theory, out)
				if bound := d.schrageMiller(rho); l.policy == "las+skip" && !(mean > bound && bound < theory) {
					t.Errorf("%s, load %g: las+skip %.4f h is below the least that there is, %.4f h", c.profile, load, mean, bound)
				}
				if shared := 1 / (1 - rho); l.policy == "las+skip" && c.profile == "poisson-hyper" && mean > shared {
					t.Errorf("load %g: las+skip %.4f h, processor sharing %.4f h: falling hazard rates favour the former", load, mean,
						shared)
				}
			}
		}
	}
}
