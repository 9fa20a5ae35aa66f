package workerplace

import (
	"cmp"
	"math"
	"slices"
	"time"

	"clustergym/env"
)

// shown is how many running jobs have rows of their own.
const shown = 20

// Widths of rows.
const (
	jobRow     = 16
	runningRow = 12
	serverRow  = 11
	pairRow    = 34
	globalRow  = 6
)

// Columns that are 1 in rows that hold something.
const (
	jobFilled     = 14
	runningFilled = 11
	pairFilled    = pairRow - 1
)

// InfoJCT is the column of Info with the mean completion time in seconds, at the end.
const InfoJCT = 5

var infoFields = []env.Field{
	{Name: "waiting", Low: 0, High: math.MaxFloat32, Unit: "fraction", Doc: "jobs that wait, of the episode's"},
	{Name: "running", Low: 0, High: math.MaxFloat32, Unit: "fraction", Doc: "jobs that run, of the episode's"},
	{Name: "coming", Low: 0, High: 1, Unit: "fraction", Doc: "jobs that have not come, of the episode's"},
	{Name: "work", Low: 0, High: math.MaxFloat32, Unit: "intervals/100", Doc: "that the jobs which are there take alone"},
	{Name: "free", Low: 0, High: 1, Unit: "fraction", Doc: "of the GPUs"},
	{Name: "jct_s", Low: 0, High: math.MaxFloat32, Unit: "seconds",
		Doc: "mean completion time, at the end; before it unknown", Metric: true},
}

func (e *Env) describe() env.Spec {
	c := &e.cfg
	unit := func(name, what, doc string, shape ...int) env.Field {
		return env.Field{Name: name, Shape: shape, Low: 0, High: 1, Unit: what, Doc: doc}
	}
	s := env.Spec{
		ID: c.ID(), Action: env.ActionSpec{Sizes: []int{c.Slots*c.Servers + 1}}, Info: infoFields,
		Solved: math.NaN(), NoOp: c.Slots * c.Servers, Tau: time.Duration(c.Interval * float64(time.Second)),
	}
	if c.Obs == "pairs" {
		s.Obs = []env.Field{
			unit("global", "fraction", "waiting, beyond the slots, running, coming, free GPUs, a gang is begun", globalRow),
			unit("pairs", "fraction",
				"slot by server: type (8), workers, left, intervals alone left, waited, CPU, GPU share, begun; of the server "+
					"free CPU, GPU, memory, jobs by type (8)/4, all workers and those of the type/8; workers of this gang here and "+
					"elsewhere/8, how many more fit/8, whether all of them do, whether the action is legal, filled", c.Slots*c.Servers,
				pairRow),
		}
		s.Obs[1].Filled = pairFilled + 1
		return s
	}
	s.Obs = []env.Field{
		unit("backlog", "log", "waiting jobs beyond the slots", 1),
		unit("jobs", "fraction",
			"slots: type (8), workers/16, left/16, intervals alone left and waited (logarithms), CPU, GPU share of the "+
				"cluster, filled, begun", c.Slots, jobRow),
		unit("place", "fraction", "workers of the slots' and the running rows' jobs on each server, by 8", c.Slots+shown,
			c.Servers),
		unit("running", "fraction",
			"running jobs, most workers first: type (8), workers/16, intervals left (logarithm), speed last seen by that "+
				"alone, filled", shown, runningRow),
		unit("servers", "fraction", "free CPU, GPU, memory; workers by type (8), by 8", c.Servers, serverRow),
	}
	s.Obs[1].Filled, s.Obs[3].Filled = jobFilled+1, runningFilled+1
	return s
}

// scaled is C(k, m) = ln(1+k)/ln(1+m), cut to [0, 1].
func scaled(k, m float64) float32 {
	return float32(min(max(math.Log1p(k)/math.Log1p(m), 0), 1))
}

func share(a, b float64) float32 { return float32(min(max(a/b, 0), 1)) }

func (e *Env) fill(ts *env.TimeStep, kind env.Kind) {
	if e.cfg.Obs == "pairs" {
		e.observePairs(ts.Obs)
	} else {
		e.observe(ts.Obs)
	}
	e.inform(ts.Info, kind)
	ts.Kind, ts.Reward, ts.Elapsed = kind, e.reward, e.elapsed
	copy(ts.Mask, e.mask)
}

func (e *Env) inform(dst []float64, kind env.Kind) {
	work, free := 0.0, 0
	for _, list := range [...][]int32{e.waiting, e.running} {
		for _, id := range list {
			work += e.jobs[id].work - e.jobs[id].done
		}
	}
	for m := range e.active {
		free += e.free[m].gpus
	}
	n := float64(len(e.jobs))
	dst[0], dst[1], dst[2] = float64(len(e.waiting))/n, float64(len(e.running))/n, float64(len(e.jobs)-e.next)/n
	dst[3], dst[4], dst[5] = work/100, float64(free)/float64(e.active*e.cfg.GPUs), math.NaN()
	if kind.Last() {
		sum := 0.0
		for i := range e.jobs {
			end := e.jobs[i].finish
			if math.IsNaN(end) {
				end = max(float64(e.time), float64(e.jobs[i].arrives))
			}
			sum += end - float64(e.jobs[i].arrives)
		}
		dst[5] = sum / n * e.cfg.Interval
	}
}

// row writes what slots and pairs have in common: type, workers, left, intervals alone left, waited, CPU and GPU share.
func (e *Env) row(dst []float32, j *job) {
	dst[j.kind] = 1
	dst[8], dst[9] = share(float64(j.workers), 16), share(float64(j.workers-j.placed), 16)
	dst[10], dst[11] = scaled(j.work-j.done, 500), scaled(float64(e.time-j.arrives), 500)
	dst[12] = share(float64(j.workers*workerCPUs), float64(e.active*e.cfg.CPUs))
	dst[13] = share(float64(j.workers*j.gpus), float64(e.active*e.cfg.GPUs))
}

func (e *Env) observe(dst []float32) {
	c := &e.cfg
	clear(dst)
	dst[0] = scaled(float64(max(len(e.waiting)-c.Slots, 0)), 1024)
	jobs, rest := dst[1:1+c.Slots*jobRow], dst[1+c.Slots*jobRow:]
	place, rest := rest[:(c.Slots+shown)*c.Servers], rest[(c.Slots+shown)*c.Servers:]
	running, servers := rest[:shown*runningRow], rest[shown*runningRow:]
	put := func(row int, j *job) {
		for m, w := range j.on {
			place[row*c.Servers+m] = share(float64(w), 8)
		}
	}
	for s, id := range e.visible() {
		j := &e.jobs[id]
		r := jobs[s*jobRow : (s+1)*jobRow]
		e.row(r, j)
		r[jobFilled] = 1
		if e.begun == id {
			r[15] = 1
		}
		put(s, j)
	}
	e.order = append(e.order[:0], e.running...)
	slices.SortStableFunc(e.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(e.jobs[b].workers, e.jobs[a].workers), cmp.Compare(a, b))
	})
	for i, id := range e.order[:min(len(e.order), shown)] {
		j := &e.jobs[id]
		r := running[i*runningRow : (i+1)*runningRow]
		r[j.kind] = 1
		r[8], r[9], r[10], r[runningFilled] = share(float64(j.workers), 16), scaled(j.work-j.done, 500), share(j.seen, 1), 1
		put(c.Slots+i, j)
	}
	for m := range e.active {
		r := servers[m*serverRow : (m+1)*serverRow]
		e.server(r, m)
		for _, list := range [...][]int32{e.running, e.gang()} {
			for _, id := range list {
				r[3+e.jobs[id].kind] += float32(e.jobs[id].on[m]) / 8
			}
		}
		for k := range Types {
			r[3+k] = min(r[3+k], 1)
		}
	}
}

// gang is the job that is begun, if one is.
func (e *Env) gang() []int32 {
	for s, id := range e.visible() {
		if id == e.begun {
			return e.waiting[s : s+1]
		}
	}
	return nil
}

// server writes what is free.
func (e *Env) server(dst []float32, m int) {
	f := &e.free[m]
	dst[0], dst[1], dst[2] = share(float64(f.cpus),
		float64(e.cfg.CPUs)), share(float64(f.gpus), float64(e.cfg.GPUs)), share(float64(f.memory), float64(e.cfg.Memory))
}

func (e *Env) observePairs(dst []float32) {
	c := &e.cfg
	clear(dst)
	g, pairs := dst[:globalRow], dst[globalRow:]
	free := 0
	for m := range e.active {
		free += e.free[m].gpus
	}
	n := float64(len(e.jobs))
	g[0], g[1], g[2] = scaled(float64(len(e.waiting)),
		n), scaled(float64(max(len(e.waiting)-c.Slots, 0)), n), scaled(float64(len(e.running)), n)
	g[3], g[4] = share(n-float64(e.next), n), share(float64(free), float64(e.active*c.GPUs))
	if e.begun >= 0 {
		g[5] = 1
	}
	for m := range e.active {
		// The server's part is the same in all slots: written once, copied.
		var part [3 + 2*Types]float32
		e.server(part[:], m)
		for _, id := range e.running {
			j := &e.jobs[id]
			if w := j.on[m]; w > 0 {
				part[3+j.kind] += 0.25
				part[3+Types+j.kind] += float32(w) / 8
			}
		}
		for k := range part {
			part[k] = min(part[k], 1)
		}
		for s, id := range e.visible() {
			j := &e.jobs[id]
			r := pairs[(s*c.Servers+m)*pairRow:][:pairRow]
			if m > 0 { // the job's part is the same for all servers
				copy(r, pairs[s*c.Servers*pairRow:][:15])
			} else {
				e.row(r[:14], j)
				if e.begun == id {
					r[14] = 1
				}
			}
			// 15 numbers of the job, 16 of the server's jobs and workers with 3 of its room, then the gang's.
			copy(r[15:], part[:3])
			for k := range Types {
				r[18+k] = part[3+k]
			}
			at := 18 + Types
			total := float32(0)
			for k := range Types { // workers by type, of which only the sum is kept beside the type's own
				total += part[3+Types+k]
			}
			r[at] = min(total, 1)
			r[at+1] = part[3+Types+j.kind]
			r[at+2] = share(float64(j.on[m]), 8)
			r[at+3] = share(float64(j.placed-int(j.on[m])), 8)
			r[at+4] = share(float64(e.free[m].holds(j.gpus)), 8)
			if e.free[m].holds(j.gpus) >= j.workers-j.placed {
				r[at+5] = 1
			}
			if e.mask[s*c.Servers+m] {
				r[at+6] = 1
			}
			r[pairFilled] = 1
		}
	}
}
