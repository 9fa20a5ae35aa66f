package schedview

import (
	"math"
	"slices"
	"time"
)

// Page is one workload under one or more schedulers. Not safe for concurrent use.
type Page struct {
	Title  string
	Facts  [][2]string // what it is about: name and value
	Header []string    // of the table of metrics; the first column names the run
	Rows   [][]string  // one for each run, as long as Header
	Notes  []string    // one sentence each
	// Warmup and Tail are so many jobs at the beginning and at the end, by position, that do not count among
	// completion times.
	Warmup, Tail int

	limits limits
	jobs   jobTable
	runs   []*Run
}

// limits bound what a page keeps.
type limits struct {
	buckets int // of a run's time series
	columns int // of a run's map of node × time
	rows    int // of the same
	stints  int // of a run that are drawn one by one
	spans   int // of GPUs that these hold
	gpus    int // of a cluster on which stints are drawn
	jobs    int // that are told by name
	downs   int // of a run's nodes
	curve   int // points of a distribution
	detail  int // bytes of all jobs and stints
	text    int // runes of a name
}

// New is an empty page for so many runs: the more there are, the less room each has.
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

// Run adds a run, which is called name. It must be shown all of the run's points, from the first.
func (p *Page) Run(name string) *Run {
	r := &Run{page: p, name: name}
	r.series.most, r.heat.columns = p.limits.buckets, p.limits.columns
	p.runs = append(p.runs, r)
	return r
}

// curve is a distribution: of the jobs, share[i] took at[i] at most.
type curve struct {
	at    []time.Duration
	share []float64
	jobs  int
}

// completion is how long a job took from its submit.
type completion struct {
	pos int32
	jct time.Duration
}

// curve describes the jobs that count: each where they are few, else so many of them that lie evenly.
func (r *Run) curve() curve {
	l := &r.page.limits
	jct := make([]time.Duration, 0, len(r.done))
	for _, d := range r.done {
		if int(d.pos) >= r.page.Warmup && (r.page.Tail <= 0 || int(d.pos) <= r.last-r.page.Tail) {
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
