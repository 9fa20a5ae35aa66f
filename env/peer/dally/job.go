package dally

import "math"

// Job is one job of the workload.
type Job struct {
	ID         int64   // ties between jobs end with it
	Name       string  // as in the file, for messages
	Arrival    float64 // seconds
	GPUs       int
	Model      string
	Iterations float64 // in all, of all GPUs together: a block takes Granularity off for every GPU
	Time       float64 // seconds of one iteration on one GPU
	// Compute and Bytes are what built-in networks know of the model: seconds that one iteration computes, and the
	// bytes that it exchanges. 0 = those of the model's name, where they are known.
	Compute float64
	Bytes   float64
}

// Result is what happened to a job. Times are seconds.
type Result struct {
	First, End   float64 // first start, and end
	Queue        float64 // sum of the waits that ended with GPUs
	GPUTime      float64 // of its blocks, not multiplied by GPUs
	CompTime     float64 // GPUTime if communication took no time
	Grants       [Levels]int
	WhileRunning int // grants that it was given while it ran
}

// Levels of a gang's place: one GPU, inside a slot, a machine, a rack, and across racks.
const Levels = 5

// Report is what a run found.
type Report struct {
	Jobs   []Result // in the order of the workload
	Blocks int64
	Passes int64
	End    float64 // of the last job
}

// Totals sum up a report as the authors' program does.
type Totals struct {
	Makespan                    float64 // last end − first arrival
	MeanJCT, MeanQueue          float64
	GPUTime, CompTime, CommTime float64
	Grants                      [Levels]int
	WhileRunning                int
}

// Totals are over all jobs, in the order of the workload.
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

// EventKind says what happened to a job.
type EventKind uint8

// The kinds of events.
const (
	Submit  EventKind = iota
	Start             // it waited and was given GPUs
	Second            // it runs and was given a second gang
	Preempt           // its lease ended: it waits
	Migrate           // it runs on its second gang from now on (gandiva)
	Finish
)

func (k EventKind) String() string {
	return [...]string{"submit", "start", "second-gang", "preempt", "migrate", "finish"}[k]
}

// Event is one thing that happened. GPUs count in the order rack, machine, slot, GPU, and stand in the order in
// which they were taken; they are valid until the hook returns.
type Event struct {
	At   float64
	Kind EventKind
	Job  int // index in the workload
	GPUs []int32
}

// job is a job under way.
type job struct {
	rem, gpu, comp, prio, last float64
	first                      float64 // −1 = never started
	queue                      float64
	waiting, swap, ranked      bool
	seen                       bool // has arrived and has not ended
	n                          int32
	at                         int32 // place among the live

	cur, nxt []int32
	// Of the block that runs: its factor, and what follows from it.
	factor  float64
	slow    float64 // p / f
	step    float64 // p / f × G: how long a block takes
	ahead   float64 // p × G / f / |cur|: what the look-ahead takes for the length of the next one
	comped  float64 // p × G
	service float64 // |cur| × (p / f) × G
	eats    float64 // G × |cur|
	ideal   float64 // p × I / n

	start  float64 // of the block that runs
	expire float64 // of the lease of cur, where all of cur has the same
	// The blocks from begin on are not events each: see machine.ahead.
	begin float64
	seq   uint64

	level   int         // gandiva: how bad the place looked when a factor was first asked for
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
