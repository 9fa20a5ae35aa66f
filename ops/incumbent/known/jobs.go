package known

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"clustergym/internal/rng"
	"clustergym/traces"
)

// The cluster: nodes of two GPU types, and nodes without GPUs.
const (
	a100s, v100s, hosts = 8, 8, 4
	jobsOf              = 5000
	longest             = 48 * time.Hour
	// Limit is what the scheduler takes for the time limit of a job that has none.
	Limit = 72 * time.Hour
)

// recipe is a script that its user submits again and again.
type recipe struct {
	user, account, name string
	gpus                int
	kind                string // GPU type asked for, "" = any
	median, sigma       float64
	slack               float64 // its limit is this many times its median
	unlimited           bool
	often               float64
}

// more is what traces.Job has no field for.
type more struct {
	partition string
	array     int           // number of its array, 0 = none
	task      int           // in it
	stop      time.Duration // it is requeued when it has run this long, 0 = never
	unlimited bool
	timeout   bool // it reaches its limit
}

// draw returns jobs in order of submit, on whole seconds. Over their span they offer load times the GPUs of the cluster.
func draw(kind string, seed uint64, load float64) (jobs []traces.Job, of []more) {
	r := rng.Stream(seed, "ops/incumbent/known "+kind)
	recipes := draws(r)
	sum := 0.0
	for i := range recipes {
		sum += recipes[i].often
	}
	type batch struct {
		at    float64 // share of the span
		tasks int
		of    *recipe
	}
	var batches []batch
	for n := 0; n < jobsOf; {
		pick, k := r.Float64()*sum, 0
		for ; k < len(recipes)-1 && pick > recipes[k].often; k++ {
			pick -= recipes[k].often
		}
		b := batch{r.Float64(), 1, &recipes[k]}
		if r.Float64() < 0.12 && b.of.gpus <= 4 {
			b.tasks = 2 + r.IntN(9)
		}
		b.tasks = min(b.tasks, jobsOf-n)
		n += b.tasks
		batches = append(batches, b)
	}
	demand := map[string]float64{} // GPU-seconds, by type
	var works [][]time.Duration
	for _, b := range batches {
		var list []time.Duration
		for range b.tasks {
			w := min(longest, time.Duration(max(10, b.of.median*math.Exp(b.of.sigma*r.NormFloat64())))*time.Second)
			list = append(list, w)
			demand[b.of.kind] += w.Seconds() * float64(b.of.gpus)
		}
		works = append(works, list)
	}
	span := max((demand[""]+demand["a100"]+demand["v100"])/(8*a100s+4*v100s), demand["a100"]/(8*a100s),
		demand["v100"]/(4*v100s)) / load
	at := make([]time.Duration, len(batches))
	order := make([]int, len(batches))
	for i := range batches {
		at[i], order[i] = time.Duration(daily(batches[i].at, span/86400)*span)*time.Second, i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	next, arrays := 1000, 0
	for _, i := range order {
		b := &batches[i]
		array := 0
		if b.tasks > 1 {
			arrays++
			array = arrays
		}
		for task, w := range works[i] {
			j, m := b.of.job(r, at[i]-at[order[0]], w)
			j.ID, m.array, m.task = fmt.Sprint(next), array, task
			if array > 0 {
				j.ID = fmt.Sprintf("%d_%d", next, task)
			}
			jobs, of = append(jobs, j), append(of, m)
		}
		level(jobs[len(jobs)-b.tasks:], of[len(jobs)-b.tasks:])
		next += 1 + r.IntN(3)
	}
	return jobs, of
}

// level gives the tasks of an array the longest of their limits: an array has one.
func level(tasks []traces.Job, of []more) {
	limit := time.Duration(0)
	for i := range tasks {
		limit = max(limit, tasks[i].Estimate)
	}
	for i := range tasks {
		tasks[i].Estimate = limit
		of[i].timeout = of[i].timeout && tasks[i].Work == limit
	}
}

// daily maps a uniform share of a span of days to one that is denser by day: the rate swings by half around its mean.
func daily(x, days float64) float64 {
	const swing = 0.5
	y := x
	for range 30 { // a fixed point: the map contracts for a span of any length
		y = x + swing/(2*math.Pi*days)*math.Cos(2*math.Pi*days*y) - swing/(2*math.Pi*days)
	}
	return min(1, max(0, y))
}

// draws draws the scripts of 30 users in 6 accounts, whose appetites differ.
func draws(r *rand.Rand) []recipe {
	accounts := []string{"vision", "speech", "physics", "chem", "nlp", "teaching"}
	appetite := []float64{4, 3, 1, 1, 2, 0.5}
	var all []recipe
	for u := range 30 {
		a := u % len(accounts)
		for k := range 2 + r.IntN(3) {
			c := recipe{user: fmt.Sprintf("u%02d", u), account: accounts[a], name: fmt.Sprintf("job%d-%s", k, accounts[a]),
				gpus: []int{1, 1, 1, 2, 2, 4, 4, 8, 8, 16}[r.IntN(10)], sigma: 0.3 + 0.9*r.Float64(),
				median: 2400 * math.Exp(1.1*r.NormFloat64()+1), slack: 1.5 + 6*r.Float64(), unlimited: r.Float64() < 0.08,
				often: appetite[a] * (0.3 + r.Float64())}
			switch x := r.Float64(); {
			case x < 0.12:
				c.gpus, c.median = 0, 300
			case x < 0.40 && c.gpus <= 4:
				c.kind = "v100"
			case x < 0.70 || c.gpus > 4:
				c.kind = "a100"
			}
			if c.gpus >= 8 {
				c.often /= 3
			}
			all = append(all, c)
		}
	}
	return all
}

// job returns a job of the script.
func (c *recipe) job(r *rand.Rand, submit, work time.Duration) (traces.Job, more) {
	m := more{partition: "gpu", unlimited: c.unlimited}
	limit := ceil(time.Duration(c.slack*c.median) * time.Second)
	if r.Float64() < 0.3 { // who is not sure asks for more
		limit = ceil(2 * limit)
	}
	if limit = min(limit, longest); work >= limit && !c.unlimited {
		if r.Float64() < 0.3 {
			work, m.timeout = limit, true
		} else {
			limit = min(longest, ceil(work+work/5))
		}
	}
	if c.unlimited {
		limit = Limit
	}
	j := traces.Job{User: c.user, Group: c.account, Name: c.name, Submit: submit, Work: work, Estimate: limit,
		GPUs: c.gpus, GPUMilli: 1000, CPUMilli: int64(max(2, 4*c.gpus)) * 1000, MemBytes: int64(max(4, 16*c.gpus)) << 30,
		Nodes: (c.gpus + 7) / 8, Status: traces.Completed}
	if x := r.Float64(); x < 0.02 && work > 20*time.Minute && c.gpus > 0 && !m.timeout {
		m.stop = (work / 2).Truncate(time.Second)
	} else if x < 0.10 && !m.timeout {
		j.Status = traces.Failed
	}
	if c.gpus == 0 {
		j.GPUMilli, j.Nodes, m.partition = 0, 1, "cpu"
	}
	if c.kind != "" {
		j.GPUTypes = []string{c.kind}
	}
	return j, m
}

// ceil rounds a time up to one that people ask for.
func ceil(d time.Duration) time.Duration {
	for _, h := range []float64{0.25, 0.5, 1, 2, 4, 6, 8, 12, 24, 36, 48} {
		if t := time.Duration(h * float64(time.Hour)); d <= t {
			return t
		}
	}
	return longest
}
