package sim

import (
	"math"
	"time"

	"clustergym/env/cluster"
	"clustergym/traces"
)

// View is what policies, encoders, rewards and metrics see of a run: read only, no copies. Numbers of jobs are
// those of events and lists; asking for another is a mistake of the caller's.
type View struct{ s *Simulator }

// Now is the current simulated time.
func (v *View) Now() time.Duration { return time.Duration(v.s.now) }

// Cluster is the hardware; callers must not change it.
func (v *View) Cluster() *cluster.Cluster { return v.s.cluster }

// Waiting are the jobs that wait, in no particular order (that of a list from which items are taken by moving
// the last one into the gap); sort by Pos for the order of the trace. Valid until the next decision.
func (v *View) Waiting() []Job { return v.s.waiting }

// Running are the jobs that run, in no particular order. Valid until the next decision.
func (v *View) Running() []Job { return v.s.running }

// Arriving says whether more jobs will arrive.
func (v *View) Arriving() bool { return v.s.coming }

// Arrived is the number of jobs that have arrived so far.
func (v *View) Arrived() int { return int(v.s.arrived) }

// Ended is the number of jobs that have finished.
func (v *View) Ended() int { return int(v.s.ended) }

// Over says whether the run has ended: nothing can be decided any more.
func (v *View) Over() bool { return v.s.over }

// CanWait says whether Wait without a time would be accepted.
func (v *View) CanWait() bool { return v.s.canWait() }

// Trace is what the trace says of j.
func (v *View) Trace(j Job) *traces.Job { return &v.s.traced[j] }

// Pos is the position of j among the jobs that fit the cluster, from 0, in the order of the trace.
func (v *View) Pos(j Job) int { return int(v.s.jobs[j].pos) }

// Request is what j needs: while it runs, its present gang's request, else the one with as many GPUs as asked for.
func (v *View) Request(j Job) *cluster.Request { return &v.s.jobs[j].req }

// State is where j stands.
func (v *View) State(j Job) State { return v.s.jobs[j].state }

// GPUs is the placement of j: current, or of its last stint. Empty on counters.
func (v *View) GPUs(j Job) []cluster.GPU { return v.s.jobs[j].gpus }

// Asked is the number of GPUs that j asked for, 0 for a job without any.
func (v *View) Asked(j Job) int { return int(v.s.jobs[j].asked) }

// OnNode are the jobs that hold GPUs, or without any cores and memory, of node, by number; not for counters. Valid
// until the next decision.
func (v *View) OnNode(node int) []Job {
	if !v.s.near.on {
		v.s.watchNodes()
	}
	return v.s.near.byNode[node]
}

// Rate is how fast j progresses, or will when its overhead is over: 0 unless it runs.
func (v *View) Rate(j Job) float64 { return v.s.jobs[j].rate }

// Factor is the rate at which j would progress on gpus beside the jobs that run now, itself left out. Of an elastic
// job gpus may be another number than asked for; on counters, where the list is empty, it is asked as it stands.
func (v *View) Factor(j Job, gpus []cluster.GPU) float64 { return v.s.factor(j, gpus) }

// Left is the work that is left of j, in nanoseconds at rate 1. Policies that may not know run times must not
// look.
func (v *View) Left(j Job) float64 { return leftAt(&v.s.jobs[j], v.s.now) }

// Ran is the time j has spent on GPUs so far.
func (v *View) Ran(j Job) time.Duration { return time.Duration(v.s.ran(&v.s.jobs[j])) }

// Started is when j was last started.
func (v *View) Started(j Job) time.Duration { return time.Duration(v.s.jobs[j].start) }

// FirstStart is when j was first started, -1 before.
func (v *View) FirstStart(j Job) time.Duration { return time.Duration(v.s.jobs[j].first) }

// Finished is when j finished, or will if nothing changes; meaningless while it waits.
func (v *View) Finished(j Job) time.Duration { return time.Duration(v.s.jobs[j].finish) }

// GPUTime is what j has held of GPUs so far, in GPUs × nanoseconds, shares by their size. It is summed up exactly;
// whole numbers up to 2^53 are exact here, too.
func (v *View) GPUTime(j Job) float64 { return v.s.gpuTime(j).float() }

// Lost is the progress, in work, that j lost in stops since a checkpoint.
func (v *View) Lost(j Job) time.Duration { return time.Duration(math.Round(v.s.peek(j).lost)) }

// Preemptions is how often j was stopped by a decision.
func (v *View) Preemptions(j Job) int { return int(v.s.jobs[j].stops) }

// Failures is how often j lost a node under it.
func (v *View) Failures(j Job) int { return int(v.s.peek(j).fails) }

// Migrations is how often j was moved while it ran.
func (v *View) Migrations(j Job) int { return int(v.s.peek(j).moves) }

// Resizes is how often j's gang was grown or cut while it ran.
func (v *View) Resizes(j Job) int { return int(v.s.peek(j).sizes) }

// Fits says whether j could start now, wherever its GPUs lie.
func (v *View) Fits(j Job) bool { return v.s.cluster.Fits(&v.s.jobs[j].req) }
