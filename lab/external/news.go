package external

import (
	"math"
	"slices"
	"strings"
	"time"

	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
)

// The columns of the tables in a reply to decide, as docs/reference/wire.md has them.
const (
	jobCols   = 8 + predict.Quantiles // of jobs
	textCols  = 4                     // of text
	eventCols = 6                     // of events
	endCols   = 10                    // of ended
)

// What an event tells of a job, in the first column of events.
const (
	eventStart = 1 + iota
	eventStop
	eventChange // it has other GPUs
)

// How a job has ended, in the last column of ended.
const (
	endFinished = iota
	endUnfinished
	endDropped
)

// news is what has happened in a play since the last reply. Its tables are flat, by row.
type news struct {
	jobs    []float64 // those that have arrived, in order of their positions
	text    []string
	events  []float64
	gpus    []int32 // of the events
	expects []float64
	ended   []float64
}

func (n *news) clear() {
	*n = news{n.jobs[:0], n.text[:0], n.events[:0], n.gpus[:0], n.expects[:0], n.ended[:0]}
}

// any reports whether there is some.
func (n *news) any() bool { return len(n.jobs)+len(n.events)+len(n.expects)+len(n.ended) > 0 }

// large reports whether there is so much of it that it should be sent before the play goes on.
func (n *news) large() bool {
	const rows = 1 << 14
	return len(n.jobs) > rows*jobCols || len(n.ended) > rows*endCols || len(n.events) > rows*eventCols ||
		len(n.gpus) > 8*rows
}

// nan is what stands for what is not known.
var nan = math.NaN()

// known returns a time in seconds, NaN for 0.
func known(t time.Duration) float64 {
	if t <= 0 {
		return nan
	}
	return t.Seconds()
}

// observe notes what has happened up to the point.
func (p *play) observe(point *sim.Point) {
	n := &p.news
	for i := range point.Events {
		e := &point.Events[i]
		switch e.Kind {
		case sim.Submit:
			p.arrived(e.Job)
		case sim.Finish:
			p.left(e.Job, e.At, endFinished)
		case sim.Drop:
			p.left(e.Job, -1, endDropped)
		}
		if p.Policy != nil {
			continue
		}
		switch e.Kind {
		case sim.Start:
			pos := int32(p.v.Pos(e.Job))
			p.queue, p.running = without(p.queue, pos), with(p.running, pos)
			p.event(eventStart, e)
		case sim.Preempt, sim.Fail:
			pos := int32(p.v.Pos(e.Job))
			p.queue, p.running = with(p.queue, pos), without(p.running, pos)
			p.event(eventStop, e)
		case sim.Finish:
			p.running = without(p.running, int32(p.v.Pos(e.Job)))
		case sim.Migrate, sim.Resize:
			p.event(eventChange, e)
		}
	}
	if p.v.Over() {
		for _, jobs := range [][]sim.Job{p.v.Running(), p.v.Waiting()} {
			for _, j := range jobs {
				p.left(j, -1, endUnfinished)
			}
		}
		return
	}
	if p.Policy != nil {
		return
	}
	now := int64(p.v.Now())
	for _, j := range p.v.Running() {
		if pos := p.v.Pos(j); p.ends[pos] <= now && p.ends[pos] > 0 { // it has outlived what was expected
			p.expect(j)
			n.expects = append(n.expects, float64(pos), known(time.Duration(p.ends[pos])))
		}
	}
}

// expect computes when j, which runs, is expected to end: 0 if nothing is.
func (p *play) expect(j sim.Job) {
	left := p.Estimates.Left(p.v, j)
	if left <= 0 || p.hidden(j) {
		p.ends[p.v.Pos(j)] = 0
		return
	}
	p.ends[p.v.Pos(j)] = int64(sim.After(p.v.Now(), left))
}

// hidden reports whether j's estimate in the trace is its run time, because the log has no requested times.
func (p *play) hidden(j sim.Job) bool {
	return p.Estimates.Mode == sim.EstimateTrace && p.v.Trace(j).Assumed && !p.limited
}

// estimate returns what is expected of j's run time, in seconds. Only a client that decides is told.
func (p *play) estimate(j sim.Job) float64 {
	if p.Policy != nil || p.hidden(j) {
		return nan
	}
	return known(p.Estimates.Of(p.v, j))
}

// arrived enters a job that has just been submitted.
func (p *play) arrived(j sim.Job) {
	v, n := p.v, &p.news
	pos, t := v.Pos(j), v.Trace(j)
	p.numbs = append(p.numbs, j)
	if p.Policy == nil {
		p.queue = append(p.queue, int32(pos))
		p.ends = append(p.ends, 0)
	}
	n.jobs = append(n.jobs, t.Submit.Seconds(), float64(v.Asked(j)), float64(v.Request(j).Milli)/1000, float64(t.MinGPUs),
		float64(t.MaxGPUs), float64(t.Priority), float64(t.Nodes), p.estimate(j))
	f := v.Forecast(j)
	for q := range predict.Quantiles {
		x := nan
		if f != nil && p.Policy == nil && p.Estimates.Causal() {
			x = f.Q[q].Seconds()
		}
		n.jobs = append(n.jobs, x)
	}
	n.text = append(n.text, t.ID, t.User, t.VC, strings.Join(t.GPUTypes, "|"))
}

// event notes that a job has other GPUs than before.
func (p *play) event(kind float64, e *sim.Event) {
	v, n := p.v, &p.news
	pos, end, gpus := v.Pos(e.Job), nan, e.GPUs
	if kind == eventStop {
		gpus = nil
	} else if v.State(e.Job) == sim.Running {
		p.expect(e.Job)
		end = known(time.Duration(p.ends[pos]))
	}
	// While it runs, the time that it has run follows from its start.
	ran := v.Ran(e.Job)
	if v.State(e.Job) == sim.Running {
		ran -= v.Now() - v.Started(e.Job)
	}
	n.events = append(n.events, kind, float64(pos), e.At.Seconds(), ran.Seconds(), end, float64(e.N))
	for _, g := range gpus {
		n.gpus = append(n.gpus, int32(g))
	}
}

// left notes how a job has ended, and when, -1 = it has not.
func (p *play) left(j sim.Job, at time.Duration, how float64) {
	v, n := p.v, &p.news
	first, finish, work := nan, nan, nan
	if t := v.FirstStart(j); t >= 0 {
		first = t.Seconds()
	}
	if at >= 0 {
		finish, work = at.Seconds(), v.Trace(j).Work.Seconds()
	}
	n.ended = append(n.ended, float64(v.Pos(j)), first, finish, v.Ran(j).Seconds(), work, float64(v.Preemptions(j)),
		float64(v.Migrations(j)), float64(v.Resizes(j)), float64(v.Failures(j)), how)
	p.numbs[v.Pos(j)] = -1
}

// with returns list, which ascends, with pos.
func with(list []int32, pos int32) []int32 {
	at, there := slices.BinarySearch(list, pos)
	if there {
		return list
	}
	return slices.Insert(list, at, pos)
}

// without returns list, which ascends, without pos.
func without(list []int32, pos int32) []int32 {
	at, there := slices.BinarySearch(list, pos)
	if !there {
		return list
	}
	return slices.Delete(list, at, at+1)
}
