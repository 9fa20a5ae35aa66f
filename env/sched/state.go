package sched

import (
	"time"

	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/sim"
	"clustergym/traces"
)

// State is what slots, encoder and actions see at a decision point. It belongs to the Env.
type State struct {
	View   *sim.View
	Known  []Known       // by sim.Job: what a policy may know of it
	Slots  []sim.Job     // the visible jobs, in the order of the actions
	Fits   []bool        // [len(Slots)], whether the slot's gang can start now
	Picked []cluster.GPU // a partial choice, for actions that take several steps

	Waiting      int           // jobs in the queue, visible or not
	WaitingGPUs  float64       // their GPUs
	WaitingWork  float64       // their GPUs × estimate, in GPU-nanoseconds
	WaitingSince float64       // their GPUs × submit, in GPU-nanoseconds
	LastArrival  time.Duration // latest, of any job
	LastFinish   time.Duration // latest; the episode's origin before the first
	Seed         uint64        // of the episode, for what draws by it
	Blind        bool          // no estimates: time run replaces remaining, time waited replaces e
}

// Known is what a policy may know of one job. It never changes while the job lives.
type Known struct {
	Estimate time.Duration // e; 0 when there are none
	GPUs     float64       // n, in whole GPUs
	Area     float64       // e·n in GPU-nanoseconds; n where there are no estimates
	ModelMB  float64       // gradient size
	Batch    int
	Counted  bool // belongs to the window
	Feature  [4]float32
}

// Window is what stays the same throughout an episode.
type Window struct {
	At     int           // index of the first counted job in the workload
	First  int           // position of the first counted job; those before it are occupants
	Jobs   int           // counted jobs
	Begin  time.Duration // submit of the first counted job
	GPUs   int           // of the cluster
	Tau    time.Duration
	Traced []traces.Job // occupants' candidates, then the counted jobs, with the episode's submit times
}

// Slots chooses which waiting jobs are visible. Add is called for each job that arrives (in order of position)
// and Remove when it has been started or has left. Fill sets Slots and Fits. None of them allocates in steady
// state.
type Slots interface {
	Reset()
	Add(s *State, j sim.Job)
	Remove(s *State, j sim.Job)
	Fill(s *State)
}

// Encoder writes observations. Fields are sorted by name; Encode fills dst, whose old content is arbitrary, in
// that order and does not allocate in steady state. Learn is called when a job becomes known, so that what
// never changes need not be computed again (Known.Feature is the encoder's).
type Encoder interface {
	Fields() []env.Field
	Reset(s *State)
	Learn(s *State, j sim.Job)
	Encode(dst []float32, s *State)
}

// Actions turns actions into decisions.
type Actions interface {
	Spec() env.ActionSpec
	NoOp() int // −1 = none
	// Mask marks what is legal and returns how many actions are.
	Mask(dst []bool, s *State) (legal int)
	// Decode may only extend s.Picked (no time passes), or fill d and return true. The action has been checked
	// against the mask.
	Decode(a env.Action, s *State, d *sim.Decision) (decided bool, err error)
}

// Pilot is an ability of Actions: an action that Decode turns into a Wait hands the simulator over, to a scheduler that
// decides at once and at every point up to, not including, the first one from until on at which a visible job fits. The
// scheduler is Reset first.
type Pilot interface {
	Pilot() (sch sim.Scheduler, until time.Duration)
}

// Reward is a rate per second of simulated time that only events change.
type Reward interface {
	Reset(w *Window)
	// Event follows what happened, in order, and returns what is paid at that moment. v is as of the end of the
	// instant.
	Event(v *sim.View, e *sim.Event) (lump float64)
	// Rate is what is paid per second from the last event on.
	Rate() float64
}
