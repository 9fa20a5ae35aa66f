package sim

import (
	"math"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/traces"
)

// View is the read-only interface to a run for policies, encoders, rewards and metrics; it copies nothing. Job numbers
// must come from events and lists; any other number is a bug of the caller.
type View struct {
	s                *Simulator
	cluster          *cluster.Cluster
	waiting, running *[]Job
}

// Within returns a View of the same run that shows part as its cluster, and the jobs of the two lists as all that wait
// and run: for a policy that is to see a virtual cluster as a cluster of its own. The caller keeps part and the lists
// up to date. All else, also the numbers of jobs that have arrived and ended, is that of the whole run.
func (v *View) Within(part *cluster.Cluster, waiting, running *[]Job) View {
	return View{v.s, part, waiting, running}
}

// Now returns the current simulated time.
func (v *View) Now() time.Duration { return time.Duration(v.s.now) }

// Cluster returns the hardware; callers must not change it.
func (v *View) Cluster() *cluster.Cluster { return v.cluster }

// Waiting returns the waiting jobs in no particular order (items are removed by moving the last one into the gap);
// sort by Pos for the order of the trace. It is valid until the next decision.
func (v *View) Waiting() []Job { return *v.waiting }

// Running returns the running jobs, in no particular order. It is valid until the next decision.
func (v *View) Running() []Job { return *v.running }

// DecisionEvents returns the events of the decisions made at the current point so far, in order. They are the first
// events of the next point. It is valid until the next decision.
func (v *View) DecisionEvents() []Event { return v.s.events }

// Steady reports whether the rate of a running job changes only when it is started, moved or resized, so that it
// depends on no other job.
func (v *View) Steady() bool { return !v.s.dynamic }

// Decisions returns a number that increases with every decision but Wait, so that a policy can tell whether other code
// has decided since. It is not part of snapshots: a policy reads it in Reset.
func (v *View) Decisions() uint64 { return v.s.decisions }

// Arriving reports whether more jobs will arrive.
func (v *View) Arriving() bool { return v.s.coming }

// Arrived returns the number of jobs that have arrived so far.
func (v *View) Arrived() int { return int(v.s.arrived) }

// Ended returns the number of jobs that have finished.
func (v *View) Ended() int { return int(v.s.ended) }

// Over reports whether the run has ended, so that no decision is possible any more.
func (v *View) Over() bool { return v.s.over }

// CanWait reports whether Wait without a time would be accepted.
func (v *View) CanWait() bool { return v.s.canWait() }

// Trace returns the trace data of j.
func (v *View) Trace(j Job) *traces.Job { return v.s.traced[j] }

// Pos returns the position of j among the jobs that fit the cluster, from 0, in the order of the trace.
func (v *View) Pos(j Job) int { return int(v.s.jobs[j].pos) }

// Request returns what j needs: the request of its current gang while it runs, else the one with the GPUs it asked
// for.
func (v *View) Request(j Job) *cluster.Request { return &v.s.jobs[j].req }

// State returns the state of j.
func (v *View) State(j Job) State { return v.s.jobs[j].state }

// GPUs returns the current placement of j, or that of its last stint. It is empty on counters.
func (v *View) GPUs(j Job) []cluster.GPU { return v.s.jobs[j].gpus }

// Asked returns the number of GPUs that j asked for, 0 for a job without GPUs.
func (v *View) Asked(j Job) int { return int(v.s.jobs[j].asked) }

// OnNode returns the jobs on node, in order of number: those that hold its GPUs, and jobs without GPUs that hold its
// cores and memory. It must not be called on a counter. The list is valid until the next decision.
func (v *View) OnNode(node int) []Job {
	if !v.s.near.on {
		v.s.watchNodes()
	}
	return v.s.near.byNode[node]
}

// Decided reports whether a decision about j has been made at the current point, so that no other can be.
func (v *View) Decided(j Job) bool { return v.s.jobs[j].changed == v.s.points }

// Rate returns how fast j progresses, or will after its overhead; 0 unless it runs.
func (v *View) Rate(j Job) float64 { return v.s.jobs[j].rate }

// Factor returns the rate at which j would progress on gpus beside the other jobs that now run. For an elastic job
// gpus may have another number of GPUs than asked for; on counters, where gpus is empty, the current request counts.
func (v *View) Factor(j Job, gpus []cluster.GPU) float64 { return v.s.factor(j, gpus) }

// Left returns the remaining work of j, in nanoseconds at rate 1. Policies that may not know run times must not call
// it.
func (v *View) Left(j Job) float64 { return leftAt(&v.s.jobs[j], v.s.now) }

// Ran returns the time j has spent on GPUs so far.
func (v *View) Ran(j Job) time.Duration { return time.Duration(v.s.ran(&v.s.jobs[j])) }

// Started returns when j was last started.
func (v *View) Started(j Job) time.Duration { return time.Duration(v.s.jobs[j].start) }

// FirstStart returns when j was first started, -1 before that.
func (v *View) FirstStart(j Job) time.Duration { return time.Duration(v.s.jobs[j].first) }

// Finished returns when j finished, or will finish if nothing changes; it is meaningless while j waits.
func (v *View) Finished(j Job) time.Duration { return time.Duration(v.s.jobs[j].finish) }

// GPUTime returns the GPU-time that j has held so far, in GPUs × nanoseconds, with shared GPUs counted by their share.
// It is summed exactly; a whole number up to 2^53 is returned exactly.
func (v *View) GPUTime(j Job) float64 { return v.s.gpuTime(j).float() }

// Lost returns the progress, in work, that j has lost to stops since its checkpoints.
func (v *View) Lost(j Job) time.Duration { return time.Duration(math.Round(v.s.peek(j).lost)) }

// Preemptions returns how often j was stopped by a decision.
func (v *View) Preemptions(j Job) int { return int(v.s.jobs[j].stops) }

// Failures returns how often j lost a node.
func (v *View) Failures(j Job) int { return int(v.s.peek(j).fails) }

// Migrations returns how often j was moved while it ran.
func (v *View) Migrations(j Job) int { return int(v.s.peek(j).moves) }

// Resizes returns how often j's gang was grown or shrunk while it ran.
func (v *View) Resizes(j Job) int { return int(v.s.peek(j).sizes) }

// Forecast returns what the run's predictor said of j's run time when j was submitted, nil if the run has no predictor.
// It is valid until the next Advance.
func (v *View) Forecast(j Job) *predict.Forecast {
	if !v.s.forecasts.told {
		return nil
	}
	return &v.s.forecasts.of[j]
}

// Renewed returns what the run's predictor would say of j if it were submitted now: jobs like it that have ended since
// its submit count. ok is false without a predictor, as in a fork, and if the predictor is not a predict.Renewer.
func (v *View) Renewed(j Job) (f predict.Forecast, ok bool) {
	p := v.s.forecasts.anew
	if p == nil {
		return f, false
	}
	return p.Renew(time.Duration(v.s.now), int(j), v.s.traced[j]), true
}

// Past returns what the run's predictor knows of the jobs of j's user, and of those of its virtual cluster and size. j
// has just been submitted. Nothing is known without a predictor, or of one that is no predict.Historian.
func (v *View) Past(j Job) (user, vc predict.Past) {
	if p := v.s.forecasts.past; p != nil {
		return p.Past(int(j))
	}
	return user, vc
}

// Horizon returns when the run ends at the latest, 0 = when all jobs have finished.
func (v *View) Horizon() time.Duration { return v.s.cfg.Horizon }

// Restart returns what a restart of a job with one GPU costs: work that is added, and time without progress at its stop
// and its start; and the time between two checkpoints, 0 = a stop loses nothing.
func (v *View) Restart() (cost, checkpoint time.Duration) {
	c := &v.s.cfg
	return c.Restart + c.Overhead.Start + c.Overhead.StartPerGPU + c.Overhead.Stop + c.Overhead.StopPerGPU, c.Checkpoint
}

// Fits reports whether j could start now, wherever its GPUs are.
func (v *View) Fits(j Job) bool { return v.s.cluster.Fits(&v.s.jobs[j].req) }
