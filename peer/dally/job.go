package dally

import "math"

// Job is one job of the workload.
type Job struct {
	ID         int64   // the last tie-breaker between jobs
	Name       string  // as in the file, for error messages
	Arrival    float64 // seconds
	GPUs       int
	Model      string
	Iterations float64 // total over all GPUs: a block subtracts Granularity for every GPU
	Time       float64 // seconds of one iteration on one GPU
	// Compute and Bytes are what built-in networks need to know about the model: the seconds that one iteration
	// computes and the bytes that it exchanges. 0 = the values for the model's name, if known.
	Compute float64
	Bytes   float64
}

// Result is what happened to a job. Times are seconds.
type Result struct {
	First, End   float64 // first start, and end
	Queue        float64 // sum of the waits that ended with GPUs
	GPUTime      float64 // time of its blocks, not multiplied by GPUs
	CompTime     float64 // what GPUTime would be if communication took no time
	Grants       [Levels]int
	WhileRunning int // grants that it got while it ran
}

// Levels of a gang's place: one GPU, inside a slot, a machine, a rack, and across racks.
const Levels = 5

// Report is the result of a run.
type Report struct {
	Jobs   []Result // in the order of the workload
	Blocks int64
	Passes int64
	End    float64 // end of the last job
}

// Totals sum up a report as the authors' program does.
type Totals struct {
	Makespan                    float64 // last end − first arrival
	MeanJCT, MeanQueue          float64
	GPUTime, CompTime, CommTime float64
	Grants                      [Levels]int
	WhileRunning                int
}

// Totals sums over all jobs, in the order of the workload.
func (r *Report) Totals(jobs []Job) Totals {
	var t Totals
	first, last := math.Inf(1), 0.0
	for i := range r.Jobs {
		j := &r.Jobs[i]
		first, last = min(first, jobs[i].Arrival), max(last, j.End)
		t.MeanJCT += j.End - jobs[i].Arrival
		t.MeanQueue += j.Queue
		t.GPUTime += j.GPUTime
		t.CompTime += j.CompTime
		t.CommTime += j.GPUTime - j.CompTime
		for l, n := range j.Grants {
			t.Grants[l] += n
		}
		t.WhileRunning += j.WhileRunning
	}
	if n := float64(len(jobs)); n > 0 {
		t.Makespan, t.MeanJCT, t.MeanQueue = last-first, t.MeanJCT/n, t.MeanQueue/n
	}
	return t
}

// EventKind is what happened to a job.
type EventKind uint8

// The kinds of events.
const (
	Submit  EventKind = iota
	Start             // it waited and got GPUs
	Second            // it runs and got a second gang
	Preempt           // its lease ended: it waits
	Migrate           // it runs on its second gang from now on (gandiva)
	Finish
)

func (k EventKind) String() string {
	return [...]string{"submit", "start", "second-gang", "preempt", "migrate", "finish"}[k]
}

// Event is one thing that happened to a job. GPUs are numbered in the order rack, machine, slot, GPU, and listed in
// the order in which they were taken. The slice is valid until the hook returns.
type Event struct {
	At   float64
	Kind EventKind
	Job  int // index in the workload
	GPUs []int32
}

// job is the state of a job.
type job struct {
	rem, gpu, comp, prio, last float64
	first                      float64 // −1 = never started
	queue                      float64
	waiting, swap, ranked      bool
	seen                       bool // has arrived and has not ended
	n                          int32
	at                         int32 // index in machine.live

	cur, nxt []int32
	// Of the running block: its factor, and what follows from it.
	factor  float64
	slow    float64 // p / f
	step    float64 // p / f × G: how long a block takes
	ahead   float64 // the look-ahead's length of the next block
	comped  float64 // p × G
	service float64 // |cur| × (p / f) × G
	eats    float64 // G × |cur|
	ideal   float64 // p × I / n

	start  float64 // of the running block
	expire float64 // of the lease of cur, if all of cur has the same
	// Not every block from begin on is an event: see machine.schedule.
	begin float64
	seq   uint64

	level   int         // gandiva: how bad the place was when a factor was first looked up
	factors [4][]seenAt // gandiva: by tier
	grants  [Levels]int
	running int
	end     float64
}

// seenAt is a factor that gandiva has found for a number of GPUs.
type seenAt struct {
	n int
	f float64
}
