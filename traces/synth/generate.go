package synth

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"time"

	"clustergym/internal/rng"
	"clustergym/traces"
	"clustergym/traces/dally"
)

// Generate makes a workload of cfg.Jobs jobs in order of submit, whose IDs are their positions. The same cfg and seed
// give the same jobs. It is an error if cfg is not valid.
//
// Step by step, for a profile p that is a table:
//
//  1. The jobs are dealt out to streams, one for each virtual cluster and size, in proportion to p's shares. Remainders
//     are drawn, so that shares are also right on average over short workloads.
//  2. A stream's jobs come in bursts whose lengths are drawn from p's table, until the stream has its number of jobs.
//     Given their number, the starts of a Poisson process are independent draws from its rate. Here the rate is hour of
//     the day × day of the week × a log-normal factor for the day and the virtual cluster (correlated from one day to
//     the next by p.persist).
//  3. Gaps in a burst are drawn from p's table through a Gaussian copula: bursts are fast or slow as a whole.
//  4. Each burst draws the level of its run times; a job repeats the setting of the job before with probability again,
//     else it draws a new one around that level. Short bursts and campaigns have different levels.
//  5. If p has habits, the bursts get other users and levels, which go on from those before (generator.repeat), and
//     jobs get names.
//  6. Within each size class these run times are sorted, and the k-th of n becomes the quantile (k+1/2)/n of p's table
//     for that class.
//
// Submits and run times are whole seconds, as in the recorded data; the first submit is near 0.
func Generate(cfg Config, seed uint64) ([]traces.Job, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if isHPC(cfg.Profile) {
		h, err := NewHPC(cfg, seed)
		if err != nil {
			return nil, err
		}
		return traces.ReadAll(h)
	}
	jobs := whole(cfg, seed)
	for i := range jobs {
		// Conversions of later times do not saturate, so such times come out of order.
		if at := jobs[i].Submit; at < 0 || at > maxSpan*time.Second || i > 0 && at < jobs[i-1].Submit {
			return nil, tooLate(cfg, i+1)
		}
		cfg.end(&jobs[i])
	}
	return jobs, nil
}

// tooLate returns the error for a workload whose job number n comes too late for times in nanoseconds.
func tooLate(cfg Config, n int) error {
	return fmt.Errorf(
		"profile %s: job %d comes after 280 years, near the end of times: a higher rate than %g is needed for so many jobs",
		cfg.Profile, n, cfg.Rate)
}

// whole makes the jobs of a profile that is not generated one by one.
func whole(cfg Config, seed uint64) []traces.Job {
	if cfg.Profile == "proximity" {
		return proximity(cfg, seed)
	}
	if cfg.Profile == "helios" {
		return helios(cfg, seed)
	}
	if poissons[cfg.Profile] != nil {
		return poisson(cfg, seed)
	}
	if d, ok := dallys[cfg.Profile]; ok {
		d.Jobs, d.PerDay, d.MaxGPUs, d.Work = cfg.Jobs, d.PerDay*cfg.Rate, cfg.MaxGPUs, cfg.Work
		return dally.Generate(d, seed)
	}
	p := profiles[cfg.Profile]
	g := &generator{cfg: cfg, p: p, seed: seed, raw: make([]rawJob, 0, cfg.Jobs)}
	g.deal()
	for i := range g.streams {
		if g.streams[i].vc == nil {
			g.ticks(int32(i))
		} else {
			g.bursts(int32(i))
		}
	}
	if p.habits != nil {
		g.repeat(p.habits)
	}
	g.mapWork()
	return g.jobs()
}

const (
	again = 0.5  // probability that a job repeats the job before, except for noise
	noise = 0.05 // deviation of the log run time of such a repetition
	speed = 0.5  // share of a gap's variance that its burst's speed explains
)

// stream is one virtual cluster's jobs of one size; it is the beat if vc is nil.
type stream struct {
	name  string
	vc    *vc
	gpus  int
	class int32 // index in profile.work
	share float64
	n     int
	rng   *rand.Rand
}

// rawJob is a job before its run time is mapped. It is small because all are sorted twice.
type rawJob struct {
	at     float64 // seconds
	level  float64 // log of the run time drawn
	work   float64 // seconds, mapped
	seq    int32
	stream int32
	user   int32 // rank in the virtual cluster
	task   int32 // number among the user's, from 1; 0 = has none
}

type generator struct {
	cfg     Config
	p       *profile
	seed    uint64
	streams []stream
	span    float64 // seconds
	raw     []rawJob
	begun   []burst              // of profiles with habits
	rates   map[string][]float64 // by virtual cluster: cumulated rate at the end of each hour
}

// deal makes the streams and sets their numbers of jobs.
func (g *generator) deal() {
	largest := g.cfg.MaxGPUs
	if largest == 0 {
		largest = math.MaxInt
	}
	kept := g.p.beat.share // a beat has one GPU, so something is always kept
	g.streams = append(g.streams, stream{name: "beat", gpus: 1, class: g.p.class(1), share: g.p.beat.share})
	for i := range g.p.vcs {
		v := &g.p.vcs[i]
		for _, s := range v.sizes {
			if s.gpus <= largest {
				g.streams = append(g.streams,
					stream{name: v.name + "/" + strconv.Itoa(s.gpus), vc: v, gpus: s.gpus, class: g.p.class(s.gpus), share: s.of})
				kept += s.of
			}
		}
	}
	// Systematic sampling: one draw decides all remainders. Each stream gets its share rounded up or down, with the
	// right mean, and the sum is exact.
	sum, u, before := 0.0, rng.Stream(g.seed, "synth/deal").Float64(), 0
	for i := range g.streams {
		s := &g.streams[i]
		sum += s.share / kept * float64(g.cfg.Jobs)
		upto := int(sum + u)
		if i == len(g.streams)-1 {
			upto = g.cfg.Jobs
		}
		upto = min(upto, g.cfg.Jobs)
		s.n, before = upto-before, upto
		s.rng = rng.Stream(g.seed, "synth/"+s.name)
	}
	g.span = float64(g.cfg.Jobs) * g.p.gap / kept / g.cfg.Rate
	g.rates = make(map[string][]float64, len(g.p.vcs))
	for i := range g.p.vcs {
		g.rates[g.p.vcs[i].name] = g.rate(&g.p.vcs[i])
	}
}

// rate returns the cumulative rate of v's bursts by hour, up to the end of the span.
func (g *generator) rate(v *vc) []float64 {
	r := rng.Stream(g.seed, "synth/days/"+v.name)
	sigma := math.Sqrt(math.Log1p(v.busy)) // of a log-normal number with that squared coefficient of variation
	hours := int(math.Ceil(g.span / 3600))
	cum := make([]float64, hours)
	first := int(g.cfg.Start / time.Hour)
	sum, z, factor := 0.0, 0.0, 1.0
	for h := range cum {
		hour := (first + h) % (24 * 7)
		if h == 0 {
			z = r.NormFloat64()
			factor = math.Exp(sigma * z)
		} else if hour%24 == 0 {
			z = g.p.persist*z + math.Sqrt(1-g.p.persist*g.p.persist)*r.NormFloat64()
			factor = math.Exp(sigma * z)
		}
		part := math.Min(1, g.span/3600-float64(h)) // the last hour may be cut
		sum += g.p.hours[hour%24] * g.p.days[hour/24] * factor * part
		cum[h] = sum
	}
	return cum
}

// start draws the time at which a burst of v begins.
func (g *generator) start(v *vc, r *rand.Rand) float64 {
	cum := g.rates[v.name]
	u := r.Float64() * cum[len(cum)-1]
	h := min(sort.SearchFloat64s(cum, u), len(cum)-1)
	before := 0.0
	if h > 0 {
		before = cum[h-1]
	}
	width := math.Min(3600, g.span-3600*float64(h))
	return 3600*float64(h) + width*(u-before)/(cum[h]-before)
}

// bursts makes the jobs of one stream.
func (g *generator) bursts(of int32) {
	s := &g.streams[of]
	v, r := s.vc, s.rng
	length, gaps := v.length, v.gaps
	if s.gpus > 1 {
		gaps = g.p.multi
		if len(v.many) > 0 {
			length = v.many
		}
	}
	var own []float64 // run times of larger jobs depend on their size, not on the virtual cluster
	if s.gpus > 1 {
		own = g.p.work[s.class].work
	}
	ranks := harmonic(v.users)
	for left := s.n; left > 0; {
		n := min(left, max(1, int(at(lengthP, length, r.Float64(), 0))))
		left -= n
		t := g.start(v, r)
		user := int32(sort.SearchFloat64s(ranks, r.Float64()*ranks[len(ranks)-1]))
		var base, spread float64
		switch u := r.Float64(); {
		case own != nil:
			base, spread = math.Log(at(workP, own, u, 0)), v.spread[0]
		case n >= bulkLength && len(v.bulk) > 0:
			base, spread = math.Log(at(levelP, v.bulk, u, 0)), v.spread[1]
		default:
			base, spread = math.Log(at(levelP, v.few, u, 0)), v.spread[0]
		}
		fast, setting := r.NormFloat64(), 0.0
		if g.p.habits != nil {
			g.begun = append(g.begun, burst{stream: of, from: int32(len(g.raw)), n: int32(n), at: t, base: base})
		}
		for k := range n {
			if k > 0 {
				z := math.Sqrt(speed)*fast + math.Sqrt(1-speed)*r.NormFloat64()
				t += at(gapP, gaps, phi(z), 1) / g.cfg.Rate
			}
			if k == 0 || r.Float64() >= again {
				setting = spread * laplace(r)
			}
			g.add(of, rawJob{at: t, level: base + setting + noise*r.NormFloat64(), user: user})
		}
	}
}

// ticks makes the jobs of the beat, which runs for a part of the span and misses some ticks.
func (g *generator) ticks(of int32) {
	s := &g.streams[of]
	b, r := &g.p.beat, s.rng
	every := b.every / g.cfg.Rate
	long := float64(s.n) * every / b.kept
	t := r.Float64() * math.Max(every, g.span-long)
	for left := s.n; left > 0; t += every {
		if r.Float64() >= b.kept {
			continue
		}
		left--
		j := float64(r.IntN(2*b.jitter+1) - b.jitter)
		g.add(of, rawJob{at: math.Max(0, t+j), level: math.Log(at(levelP, b.work, r.Float64(), 0))})
	}
}

func (g *generator) add(of int32, j rawJob) {
	j.seq, j.stream = int32(len(g.raw)), of
	g.raw = append(g.raw, j)
}

// class returns the index in work of the distribution of run times for a size.
func (p *profile) class(gpus int) int32 {
	i := len(p.work) - 1
	for i > 0 && p.work[i].gpus > gpus {
		i--
	}
	return int32(i)
}

// mapWork gives each job the run time of its rank among the jobs of its size class.
func (g *generator) mapWork() {
	order := make([]int32, 0, len(g.raw))
	for c := range g.p.work {
		order = order[:0]
		for i := range g.raw {
			if int(g.streams[g.raw[i].stream].class) == c {
				order = append(order, int32(i))
			}
		}
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(g.raw[a].level, g.raw[b].level), cmp.Compare(a, b))
		})
		for rank, i := range order {
			u := (float64(rank) + 0.5) / float64(len(order))
			g.raw[i].work = at(workP, g.p.work[c].work, u, 0)
		}
	}
}

// jobs sorts the jobs and returns them as traces.Jobs.
func (g *generator) jobs() []traces.Job {
	slices.SortFunc(g.raw, func(a, b rawJob) int {
		return cmp.Or(cmp.Compare(math.Floor(a.at), math.Floor(b.at)), cmp.Compare(a.seq, b.seq))
	})
	users := map[[2]int32]string{}
	tasks := []string{""}
	jobs := make([]traces.Job, len(g.raw))
	for i := range g.raw {
		r := &g.raw[i]
		s := &g.streams[r.stream]
		j := &jobs[i]
		j.ID = strconv.Itoa(i)
		if s.vc == nil {
			j.VC, j.User = g.p.beat.vc, g.p.beat.user
			if g.p.habits != nil {
				j.Name = "tick"
			}
		} else {
			j.VC = s.vc.name
			key := [2]int32{r.stream, r.user}
			if j.User = users[key]; j.User == "" {
				j.User = fmt.Sprintf("%s-%03d", s.vc.name, r.user+1)
				users[key] = j.User
			}
			for len(tasks) <= int(r.task) {
				tasks = append(tasks, "task-"+strconv.Itoa(len(tasks)))
			}
			j.Name = tasks[r.task]
		}
		j.Submit = time.Duration(math.Floor(r.at)) * time.Second
		j.Work = time.Duration(math.Max(1, math.Round(r.work*g.cfg.Work))) * time.Second
		j.GPUs, j.GPUMilli = s.gpus, 1000
	}
	return jobs
}

// harmonic returns the cumulative sums of the weights 1, 1/2, … 1/n.
func harmonic(n int) []float64 {
	w := make([]float64, n)
	sum := 0.0
	for i := range w {
		sum += 1 / float64(i+1)
		w[i] = sum
	}
	return w
}

// phi returns the standard normal distribution function at z, kept below 1.
func phi(z float64) float64 { return math.Min(math.Erfc(-z/math.Sqrt2)/2, 1-1e-12) }

// laplace draws a double exponential number of standard deviation 1: settings within a burst are mostly alike, with
// some far off.
func laplace(r *rand.Rand) float64 {
	x := r.ExpFloat64() / math.Sqrt2
	if r.Uint64()&1 == 0 {
		return -x
	}
	return x
}
