package asrpt

import (
	"cmp"
	"math"
	"slices"
)

// The schedulers by their names in tables. WCS is taken to mean work-conserving: whatever fits starts.
const (
	aSRPT       = "A-SRPT"
	fifo        = "FIFO"
	spjf        = "SPJF"
	spwf        = "SPWF"
	wcsDuration = "WCS-Duration"
	wcsWorkload = "WCS-Workload"
	wcsSubTime  = "WCS-SubTime"
	srtf        = "SRTF, preempts"
	srsf        = "SRSF, preempts"
	// Controls of ours: A-SRPT whose later jobs pass one that does not fit, A-SRPT that starts the least workload of those
	// that the virtual machine has finished, and rivals that wait for servers as A-SRPT does.
	passing  = "A-SRPT, later pass"
	byArea   = "A-SRPT, by workload"
	spwfWait = "SPWF, waits"
	workWait = "WCS-Workload, waits"
	fifoWait = "WCS-SubTime, waits"
)

// published are the schedulers of the paper, its own first.
func published() []string {
	return []string{aSRPT, spjf, spwf, wcsDuration, wcsWorkload, wcsSubTime}
}

// orderings are those of the tables.
func orderings() []string {
	return append(append(published(), controls()...), fifo, srtf, srsf)
}

// controls are the schedulers of ours.
func controls() []string { return []string{passing, byArea, spwfWait, workWait, fifoWait} }

// rule says how a list of waiting jobs is treated.
type rule struct {
	order string  // a scheduler's name, whose order the list has; for A-SRPT that of the virtual machine
	skip  bool    // jobs behind one that does not fit may start
	area  bool    // jobs that the virtual machine has finished are in the order of their workload, not of their ends there
	speed float64 // of the virtual machine, in terms of the cluster; 0 = as fast
	eager bool    // GPUs that no job of the list can use go to jobs that the virtual machine still has
	wait  waiting
}

// waiting is the rule by which jobs that communicate much wait for few servers.
type waiting struct {
	// of the worst iteration to the best from which on a job communicates much; 0 = nobody waits
	Ratio    float64 `yaml:"ratio"`
	Patience float64 `yaml:"patience"` // for which it waits at most, as a part of its predicted run time
}

// ruleOf returns the rule of a scheduler that never stops a job; wait is A-SRPT's rule of waiting.
func ruleOf(name string, wait waiting) rule {
	switch name {
	case aSRPT:
		return rule{order: aSRPT, wait: wait}
	case passing:
		return rule{order: aSRPT, skip: true, wait: wait}
	case byArea:
		return rule{order: aSRPT, area: true, wait: wait}
	case spwfWait:
		return rule{order: spwf, wait: wait}
	case workWait:
		return rule{order: wcsWorkload, skip: true, wait: wait}
	case fifoWait:
		return rule{order: wcsSubTime, skip: true, wait: wait}
	case wcsDuration, wcsWorkload, wcsSubTime:
		return rule{order: name, skip: true}
	}
	return rule{order: name}
}

// list is a policy that keeps waiting jobs in an order and never stops a running one.
type list struct {
	rule
	jobs    []job
	predict predictor
	gpus    float64 // of the cluster

	said    []float64 // predicted iterations, by job
	machine *virtual  // nil unless the order is the virtual machine's
	ends    []float64 // on the virtual machine, by job
	waiting []entry   // in order
	from    []float64 // when a job was first held back, by job; NaN = never
	until   float64   // the earliest time at which a job that is held back gives up
	begun   []bool
}

// entry is a waiting job.
type entry struct {
	job int
	key float64
}

func newList(r rule, jobs []job, gpus int, p predictor) *list {
	l := &list{rule: r, jobs: jobs, predict: p, gpus: float64(gpus), until: math.Inf(1)}
	l.said, l.ends = make([]float64, len(jobs)), make([]float64, len(jobs))
	l.from, l.begun = make([]float64, len(jobs)), make([]bool, len(jobs))
	for i := range jobs {
		l.from[i] = math.NaN()
	}
	if r.order == aSRPT {
		l.machine = &virtual{}
	}
	return l
}

// duration and workload return what is expected of a job: seconds on the empty cluster, and GPU-seconds.
func (l *list) duration(j int) float64 { return l.said[j] * l.jobs[j].best }
func (l *list) workload(j int) float64 { return l.duration(j) * float64(l.jobs[j].graph.gpus) }

// pace returns the speed of the virtual machine.
func (l *list) pace() float64 {
	if l.speed == 0 {
		return 1
	}
	return l.speed
}

// submitted implements policy.
func (l *list) submitted(now float64, j int) {
	l.said[j] = l.predict.submitted(now, j)
	if l.machine != nil {
		l.settle(now)
		l.machine.add(now, j, l.workload(j)/(l.gpus*l.pace()))
		return
	}
	key := l.jobs[j].submit
	switch l.order {
	case spjf, wcsDuration:
		key = l.duration(j)
	case spwf, wcsWorkload:
		key = l.workload(j)
	}
	l.add(j, key)
}

// add puts a job into the list, behind those of the same key.
func (l *list) add(j int, key float64) {
	e := entry{j, key}
	at, _ := slices.BinarySearchFunc(l.waiting, e, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.job, b.job))
	})
	l.waiting = slices.Insert(l.waiting, at, e)
}

// settle appends to the list what the virtual machine has finished.
func (l *list) settle(now float64) {
	l.machine.advance(now, func(j int, at float64) {
		l.ends[j] = at
		switch {
		case l.begun[j]:
		case l.area:
			l.add(j, l.workload(j))
		default:
			l.waiting = append(l.waiting, entry{j, at})
		}
	})
}

// finished implements policy.
func (l *list) finished(now float64, j int) { l.predict.finished(now, j) }

// wake implements policy.
func (l *list) wake() float64 {
	if l.machine != nil {
		return min(l.machine.end(), l.until)
	}
	return l.until
}

// next implements policy.
func (l *list) next(now float64, m *machine) int {
	if l.machine != nil {
		l.settle(now)
	}
	l.until = math.Inf(1)
	for i, e := range l.waiting {
		if l.jobs[e.job].graph.gpus > m.total {
			if l.skip {
				continue
			}
			return l.early(now, m)
		}
		if l.holds(now, e.job, m) {
			continue
		}
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.begun[e.job] = true
		return e.job
	}
	return l.early(now, m)
}

// early returns a job that the virtual machine still has and that fits, the one with the least work left there.
func (l *list) early(now float64, m *machine) int {
	if !l.eager || l.machine == nil {
		return -1
	}
	for i := len(l.machine.jobs) - 1; i >= 0; i-- {
		if j := l.machine.jobs[i].job; !l.begun[j] && l.jobs[j].graph.gpus <= m.total && !l.holds(now, j, m) {
			l.begun[j] = true
			return j
		}
	}
	return -1
}

// holds reports whether job j, which fits, waits for fewer servers. Others pass it meanwhile.
func (l *list) holds(now float64, j int, m *machine) bool {
	o := &l.jobs[j]
	if l.wait.Ratio <= 0 || o.worst < l.wait.Ratio*o.best {
		return false
	}
	if gpus := o.graph.gpus; len(m.place(j).server) <= (gpus+m.net.Server-1)/m.net.Server {
		return false
	}
	if math.IsNaN(l.from[j]) {
		l.from[j] = now
	}
	end := l.from[j] + l.wait.Patience*l.duration(j)
	if end <= now {
		return false
	}
	l.until = min(l.until, end)
	return true
}

// srpt is the preemptive policy that knows everything: least remaining time first, or remaining time × GPUs.
type srpt struct {
	jobs    []job
	area    bool
	present []int
}

func (p *srpt) submitted(_ float64, j int) { p.present = append(p.present, j) }

func (p *srpt) finished(_ float64, j int) {
	p.present = slices.DeleteFunc(p.present, func(k int) bool { return k == j })
}

func (p *srpt) next(float64, *machine) int { return -1 }
func (p *srpt) wake() float64              { return math.Inf(1) }

// keep implements preemptive.
func (p *srpt) keep(now float64, m *machine) (chosen []int) {
	left := make([]entry, len(p.present))
	for i, j := range p.present {
		left[i] = entry{j, m.remaining(now, j) * p.jobs[j].best}
		if p.area {
			left[i].key *= float64(p.jobs[j].graph.gpus)
		}
	}
	slices.SortFunc(left, func(a, b entry) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.job, b.job)) })
	free := len(m.free) * m.net.Server
	for _, e := range left {
		if n := p.jobs[e.job].graph.gpus; n <= free {
			chosen = append(chosen, e.job)
			free -= n
		}
	}
	return chosen
}
