package sched

import (
	"time"

	"clustergym/env"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// State is what slots, encoder and actions see at a decision point. It belongs to the environment.
type State struct {
	View   *sim.View
	Point  *sim.Point    // the current one, nil before the first
	Moment int           // grows with every point, and with every fact: what was computed at an earlier one may be wrong
	Facts  bool          // the environment follows facts
	Known  []Known       // what a policy may know about each job, by sim.Job
	Slots  []sim.Job     // the visible jobs, in the order of the actions
	Fits   []bool        // [len(Slots)], whether the slot's gang can start now
	Picked []cluster.GPU // a partial choice, for choices that take several steps

	Running []sim.Job // the running jobs that are visible (Parts.Running), those of most expected GPU-time left first
	Stops   []bool    // [len(Running)], whether it can be stopped now: a job waits that could take its place, see Stops

	Waiting      int           // jobs in the queue, visible or not
	WaitingGPUs  float64       // their GPUs
	WaitingWork  float64       // their GPUs × Known.Rest, in GPU-nanoseconds
	WaitingSince float64       // their GPUs × submit, in GPU-nanoseconds
	LastArrival  time.Duration // latest, of any job
	LastFinish   time.Duration // latest; the episode's origin before the first
	ModelMB      float64       // gradient size of the job that is being learned, if it is counted
	Batch        int           // and its batch size
	Seed         uint64        // of the episode, for parts that draw
	Estimates    sim.Estimates // where estimates come from
	Blind        bool          // no estimates: the time run replaces the remaining time, the time waited replaces e
}

// Left returns the expected time left for j: at least 1 ns, or 0 where there are no estimates.
func (s *State) Left(j sim.Job) time.Duration {
	ran := s.View.Ran(j)
	var t time.Duration
	if s.Estimates.Causal() {
		t = s.View.Forecast(j).Outliving(ran)
	} else if t = sim.Outlived(s.Known[j].Estimate, ran); t <= 0 { // noise is not drawn again
		return 0
	}
	return max(1, t-ran)
}

// Known is what a policy may know about one job. It never changes while the job is in the system, but for Rest and Area
// of a job that is stopped.
type Known struct {
	Estimate time.Duration // e, as of its submit; 0 when there are none
	Rest     time.Duration // what is expected to be left of e when the job waits: e, until it has been stopped
	GPUs     float64       // n, in whole GPUs
	Area     float64       // Rest·n in GPU-nanoseconds; n where there are no estimates
	Submit   time.Duration
	Feature  [5]float32
	Counted  bool // the agent's: it does not belong to the warm-up of a Drained episode
	Plain    bool // it fits wherever n GPUs are free (cluster.Request.Plain)
}

// CanFit reports whether j could start now, wherever its GPUs are.
func (s *State) CanFit(j sim.Job) bool {
	if k := &s.Known[j]; k.Plain {
		return s.View.Cluster().Free() >= int(k.GPUs)
	}
	return s.View.Fits(j)
}

// Window is what stays the same throughout an episode.
type Window struct {
	Mode Mode
	At   int // index of the first counted job in the workload
	// First is the position of the first counted job, and 0 in Streamed episodes. In Drained episodes the jobs before it
	// are occupants; in Ongoing ones those that are still in the system are the agent's too.
	First int
	// Jobs is the number of jobs over which rewards are means: those counted, and in Streamed episodes the window setting,
	// so that rewards have the scale of training and do not tell the policy how long the stream is.
	Jobs   int
	Begin  time.Duration // submit of the job at First; in Ongoing episodes, of the first counted job
	End    time.Duration // when an Ongoing episode is truncated; else 0
	GPUs   int           // of the cluster
	Tau    time.Duration
	Origin time.Duration // the trace's clock when the episode's shows 0
	Traced []traces.Job  // the jobs before the counted ones, those, and those after them, with the episode's submit times
	// Warm and Counted are how many of Traced come before the counted jobs, and how many count.
	Warm, Counted int
}

// Play returns the jobs for Baseline.Play.
func (w *Window) Play() Jobs {
	j := Jobs{List: w.Traced, Origin: w.Origin, Warm: w.Warm, Keep: w.Mode != Drained, From: w.Warm,
		Until: w.Warm + w.Counted, End: w.End}
	if w.Mode == Streamed {
		j.Warm = 0
	}
	return j
}

// Counts reports whether the job at a position of the run counts: it decides when a Drained or Streamed episode ends.
func (w *Window) Counts(pos int) bool { return pos >= w.Warm && pos < w.Warm+w.Counted }

// Slots chooses which waiting jobs are visible. Add is called for each job that arrives, in order of position, and for
// each that was stopped and waits again; Remove when it has started or left. Fill sets State.Slots and State.Fits. None
// of them allocates in steady state.
type Slots interface {
	Reset()
	Add(s *State, j sim.Job)
	Remove(s *State, j sim.Job)
	Fill(s *State)
}

// Encoder writes observations. Fields are sorted by name. Encode fills dst, whose old content is arbitrary, in that
// order and does not allocate in steady state. Learn is called once when a job becomes known; the encoder may store
// there what never changes (Known.Feature belongs to it).
type Encoder interface {
	Fields() []env.Field
	Reset(s *State)
	Learn(s *State, j sim.Job)
	Encode(dst []float32, s *State)
}

// Follower is an optional ability of Encoders that keep books of what runs. Follow is called after Reset with every
// event of the episode, once and in order, before the next Encode: those of decisions as soon as they have been made,
// the others when their point is reached. The jobs of submits have been learned.
type Follower interface {
	Follow(s *State, events []sim.Event)
	// Rejoin begins the books anew from what runs now, as if all events had been followed.
	Rejoin(s *State)
}

// Renewer is an optional ability of encoders: Renew is called when a job waits again and has another Known.Rest.
type Renewer interface {
	Renew(s *State, j sim.Job)
}

// Actions turns actions into decisions.
type Actions interface {
	Spec() env.ActionSpec
	NoOp() int // −1 = none
	// Mask marks what is legal and returns how many actions are.
	Mask(dst []bool, s *State) (legal int)
	// Decode either extends s.Picked, and no time passes, or fills d and returns true. The action has been checked
	// against the mask.
	Decode(a env.Action, s *State, d *sim.Decision) (decided bool, err error)
}

// Pilot is an optional ability of Actions: a scheduler decides between two actions. It is asked after a Decode that has
// decided, and then at every point at which the agent is not asked.
type Pilot interface {
	// Pilot returns the scheduler that decides now until it waits; nil = none does.
	Pilot(s *State) sim.Scheduler
	// Holds reports, when the scheduler has waited, whether time passes before the agent is asked.
	Holds() bool
}

// Reward is a rate per second of simulated time that changes only at events.
type Reward interface {
	Reset(w *Window)
	// Event is called for every event in order and returns the lump sum paid at that moment. v is the state at the end
	// of the instant.
	Event(v *sim.View, e *sim.Event) (lump float64)
	// Rate returns what is paid per second from the last event on.
	Rate() float64
}
