package htmlpage

import (
	"math"
	"slices"
	"time"
)

// Page is what a page shows: figures, tables, and one workload under schedulers. Not safe for concurrent use.
type Page struct {
	Title   string
	Facts   [][2]string // names and values that describe the workload
	Charts  []Chart
	Forests []Forest
	Tables  []Table
	Notes   []string // one sentence in each
	// ChartsTitle and ForestsTitle stand above the charts and the differences; "" = "Learning" and "Paired differences".
	ChartsTitle, ForestsTitle string
	// Warmup and Tail are the numbers of jobs at the beginning and at the end, by position, that the distributions of
	// completion times leave out.
	Warmup, Tail int
	// Jobs is how many jobs after the first Warmup ones count; 0 = all. Those after them are drawn and do not count.
	Jobs int
	// Focus shows at first the time in which most of the jobs end, where the last ones take far longer. A reader can zoom
	// out.
	Focus bool

	limits limits
	jobs   jobTable
	runs   []*Run
}

// limits bounds the contents of a page.
type limits struct {
	buckets int // of a run's time series
	columns int // of a run's map of node × time
	rows    int // of that map
	stints  int // of a run whose stints are drawn
	spans   int // of GPUs that these stints hold
	gpus    int // of a cluster on which stints are drawn
	jobs    int // with names and other facts
	downs   int // outages of a run's nodes
	curve   int // points of a distribution
	detail  int // bytes of all jobs and stints
	text    int // runes of a name
}

// New returns an empty page for at most the given number of runs. The more runs, the less room each has.
func New(runs int) *Page {
	n := max(1, runs)
	share := func(all, least, most int) int { return min(max(all/n, least), most) }
	return &Page{limits: limits{
		buckets: share(24_000, 100, 2000),
		columns: share(6000, 50, 600),
		rows:    256,
		stints:  share(160_000, 1000, 40_000),
		spans:   share(320_000, 2000, 80_000),
		gpus:    1 << 14,
		jobs:    40_000,
		downs:   share(20_000, 100, 5000),
		curve:   share(6000, 100, 800),
		detail:  9 << 20,
		text:    64,
	}}
}

// Run adds a run called name. The result must observe all points of the run from its first observation on. Jobs that
// are in the system then are shown from that point on.
func (p *Page) Run(name string) *Run {
	r := &Run{page: p, name: name}
	r.series.most, r.heat.columns = p.limits.buckets, p.limits.columns
	p.runs = append(p.runs, r)
	return r
}

// curve is a distribution: the share share[i] of the jobs took at most at[i].
type curve struct {
	at    []time.Duration
	share []float64
	jobs  int
}

// completion is the completion time of a job.
type completion struct {
	pos int32
	jct time.Duration
	at  time.Duration // of the finish
}

// focus returns a time after which few jobs end, 0 if it is not much before the end of the page.
func (p *Page) focus(origin, end time.Duration) time.Duration {
	at := time.Duration(0)
	for _, r := range p.runs {
		if len(r.done) == 0 {
			continue
		}
		// Jobs finish in order of time.
		at = max(at, r.done[(len(r.done)-1)*19/20].at-origin)
	}
	if at = at * 11 / 10; at > (end-origin)*2/3 {
		return 0
	}
	return at
}

// curve returns the distribution of the jobs that count: every job if they are few, otherwise evenly spaced ones.
func (r *Run) curve() curve {
	l := &r.page.limits
	jct := make([]time.Duration, 0, len(r.done))
	for _, d := range r.done {
		pos := int(d.pos)
		if pos >= r.page.Warmup && (r.page.Tail <= 0 || pos <= r.last-r.page.Tail) &&
			(r.page.Jobs <= 0 || pos < r.page.Warmup+r.page.Jobs) {
			jct = append(jct, d.jct)
		}
	}
	slices.Sort(jct)
	n, points := len(jct), min(len(jct), l.curve)
	c := curve{jobs: n}
	for i := range points {
		k := n - 1
		if points > 1 {
			k = int(math.Round(float64(i) * float64(n-1) / float64(points-1)))
		}
		c.at = append(c.at, jct[k])
		c.share = append(c.share, float64(k+1)/float64(n))
	}
	return c
}
