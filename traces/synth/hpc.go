package synth

import (
	"io"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"time"

	"clustergym/internal/rng"
	"clustergym/traces"
)

// HPC generates the batch queue of a supercomputer with the model of Lublin and Feitelson ("The Workload on Parallel
// Supercomputers: Modeling the Characteristics of Rigid Jobs", JPDC 63(11), 2003, figures for all jobs together). It
// makes one job at a time, so its workloads may have any length. Job.GPUs counts processors.
//
//   - Size: one processor with probability 0.244; else the logarithm to base 2 is two-stage uniform between 0.8 and
//     that of the machine, and the size a power of 2 in 0.576 of all jobs.
//   - Run time: its logarithm is hyper-gamma, and wide jobs are rarely short.
//   - Arrivals: the logarithm of the gap is gamma, and gaps are stretched by a daily cycle of half hours.
//
// In the profile hpc (lublin is the model alone), each job also has one of 100 users, drawn with weight 1/rank, and an
// estimate like those that users give: the run time times a log-uniform factor between 1 and 10, rounded up to quarters
// of an hour. The model has no weeks: only the time of day of Config.Start matters. HPC is a traces.Stream with
// constant memory. Not safe for concurrent use.
type HPC struct {
	cfg   Config
	hpc   bool
	left  int
	next  int // position of the next job
	now   float64
	cycle [buckets]float64 // rate by half hour of the day, mean 1
	most  int              // processors of the machine
	high  float64          // log2 of them

	sizes, works, gaps, users, factors *rand.Rand

	ranks []float64 // of users
	names []string
}

var _ traces.Stream = (*HPC)(nil)

// Figures of the model.
const (
	serial, power2         = .244, .576
	logLow, lowShare       = .8, .86
	lowerHalf              = 2.5 // log2 of the machine less log2 of the size at which the two stages meet
	short1, short2         = 4.2, .94
	long1, long2           = 312, .03
	shortAll, shortPerProc = .78, -.0054
	maxLogWork             = 12. // longer run times are drawn again
	gap1, gap2             = 10.2303 * 1.0225, .4871
	maxLogGap              = 13.
	day1, day2             = 8.1737, 3.9631 // in half hours
	dayStart               = 11             // the half hour at which the daily cycle begins
	buckets                = 48
	bucket                 = 1800. // seconds
	meanGap                = 945.  // seconds, of both together as measured
	maxSpan                = 280 * 365.25 * 86400.
)

// isHPC reports whether HPC makes a profile.
func isHPC(profile string) bool { return profile == "hpc" || profile == "lublin" }

// NewHPC starts a workload of profile hpc or lublin. The same cfg and seed give the same jobs. It is an error if cfg is
// not valid.
func NewHPC(cfg Config, seed uint64) (*HPC, error) {
	if !isHPC(cfg.Profile) {
		cfg.Profile = "hpc"
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &HPC{cfg: cfg, hpc: cfg.Profile == "hpc", left: cfg.Jobs, most: cfg.Procs,
		now: math.Mod(cfg.Start.Seconds(), buckets*bucket)}
	if g.most == 0 {
		g.most = DefaultProcs
	}
	g.high = math.Log2(float64(g.most))
	for name, to := range map[string]**rand.Rand{"sizes": &g.sizes, "works": &g.works, "gaps": &g.gaps, "users": &g.users,
		"factors": &g.factors} {
		*to = rng.Stream(seed, "synth/hpc/"+name) // streams do not depend on the order in which they are made
	}
	sum := 0.0
	for i := range buckets {
		x := float64(dayStart + i)
		w := gammaBetween(x-.5, x+.5, day1, day2)
		g.cycle[(dayStart+i-1)%buckets] = w
		sum += w
	}
	for i := range g.cycle {
		g.cycle[i] *= buckets / sum
	}
	g.ranks = harmonic(100)
	for i := range g.ranks {
		g.names = append(g.names, strconv.Itoa(i+1))
	}
	return g, nil
}

// DefaultProcs is the size of the machine if Config.Procs is 0.
const DefaultProcs = 128

// Next implements traces.Stream.
func (g *HPC) Next(j *traces.Job) error {
	for g.left > 0 {
		g.arrive()
		n := g.size()
		work := g.work(n)
		user := g.names[min(len(g.names)-1, sort.SearchFloat64s(g.ranks, g.users.Float64()*g.ranks[len(g.ranks)-1]))]
		factor := math.Pow(10, g.factors.Float64())
		if g.cfg.MaxGPUs > 0 && n > g.cfg.MaxGPUs {
			continue
		}
		start := math.Mod(g.cfg.Start.Seconds(), buckets*bucket)
		if g.now-start > maxSpan {
			return tooLate(g.cfg, g.next+1)
		}
		*j = traces.Job{ID: strconv.Itoa(g.next + 1), Submit: time.Duration(g.now-start) * time.Second, Work: work, GPUs: n,
			GPUMilli: 1000}
		if g.hpc {
			const quarter = 15 * time.Minute
			j.User = user
			j.Estimate = max(1, time.Duration(math.Ceil(work.Seconds()*factor/quarter.Seconds()))) * quarter
		}
		g.cfg.end(j)
		g.next++
		g.left--
		return nil
	}
	return io.EOF
}

// arrive moves the clock to the next job. It draws a gap for a day without a cycle and consumes it at the rate of each
// half hour.
func (g *HPC) arrive() {
	x := maxLogGap + 1
	for x > maxLogGap {
		x = gamma(g.gaps, gap1, gap2)
	}
	for left := math.Exp(x) / g.cfg.Rate; ; {
		k := math.Floor(g.now / bucket)
		rate := g.cycle[int(math.Mod(k, buckets))]
		until := (k + 1) * bucket
		if part := rate * (until - g.now); part < left {
			left -= part
			g.now = until
			continue
		}
		g.now = min(g.now+left/rate, math.Nextafter(until, 0))
		return
	}
}

func (g *HPC) size() int {
	u := g.sizes.Float64()
	middle := max(logLow, g.high-lowerHalf)
	lo, hi := logLow, middle
	if g.sizes.Float64() > lowShare {
		lo, hi = middle, max(middle, g.high)
	}
	l := lo + (hi-lo)*g.sizes.Float64()
	if u <= serial {
		return 1
	}
	if u <= serial+power2 {
		l = math.Floor(l + .5)
	}
	return min(g.most, max(1, int(math.Pow(2, l)+.5)))
}

// work draws a run time in whole seconds, at least 1.
func (g *HPC) work(n int) time.Duration {
	p := min(1, max(0, shortAll+shortPerProc*float64(n)))
	x := maxLogWork + 1
	for x > maxLogWork {
		if g.works.Float64() <= p {
			x = gamma(g.works, short1, short2)
		} else {
			x = gamma(g.works, long1, long2)
		}
	}
	return time.Duration(max(1, math.Floor(math.Exp(x)*g.cfg.Work))) * time.Second
}

// gamma draws from the gamma distribution with shape a, 1 or more, and scale b (Marsaglia and Tsang, "A Simple Method
// for Generating Gamma Variables", ACM TOMS 2000).
func gamma(r *rand.Rand, a, b float64) float64 {
	d := a - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v * b
		}
	}
}

// gammaBetween returns the probability that a gamma distribution of shape a and scale b gives a number from lo to hi,
// by Simpson's rule. Its error is below 1e-8 for the half hours of a day.
func gammaBetween(lo, hi, a, b float64) float64 {
	norm, _ := math.Lgamma(a)
	density := func(x float64) float64 { return math.Exp((a-1)*math.Log(x/b)-x/b-norm) / b }
	const n = 16
	h := (hi - lo) / n
	sum := density(lo) + density(hi)
	for i := 1; i < n; i++ {
		w := 4.
		if i%2 == 0 {
			w = 2
		}
		sum += w * density(lo+h*float64(i))
	}
	return sum * h / 3
}
