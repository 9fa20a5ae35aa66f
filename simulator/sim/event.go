package sim

import (
	"errors"
	"time"

	"clustergym/simulator/cluster"
)

// Job is the number of a job in a run: a dense index, given at arrival and reused for another job after its own has
// ended. Every run with the same jobs and decisions gives the same numbers. View.Pos returns a job's position in the
// trace, which is never reused.
type Job int32

// EventKind says what kind of event happened.
type EventKind uint8

// The kinds of events.
const (
	Submit      EventKind = iota // the job arrived
	Start                        // the job received GPUs, for the first time or again
	Preempt                      // its GPUs were taken away
	Finish                       // its work is done
	Drop                         // the job left without finishing
	Timer                        // the time of WaitUntil was reached; no job
	Migrate                      // the job was moved to the GPUs shown
	Resize                       // the gang grew or shrank to the GPUs shown
	Fail                         // a node of the job failed: it waits again, from its last checkpoint
	NodeFail                     // Node failed; no job
	NodeRecover                  // Node works again; no job
)

func (k EventKind) String() string {
	return [...]string{"submit", "start", "preempt", "finish", "drop", "timer", "migrate", "resize", "fail", "node-fail",
		"node-recover"}[k]
}

// jobless reports whether events of this kind have no job.
func (k EventKind) jobless() bool { return k == Timer || k == NodeFail || k == NodeRecover }

// Event is one thing that happened. GPUs is the gang's placement: the one it received (for Migrate and Resize the new
// one), or the one it released. GPUs is empty for events without a job, for Submit and Drop, and on counters. It
// belongs to the simulator and is valid until the next Advance.
type Event struct {
	At   time.Duration
	Kind EventKind
	Job  Job   // -1 for Timer, NodeFail and NodeRecover
	Node int32 // of NodeFail and NodeRecover
	N    int32 // GPUs of the gang: the length of GPUs, or on counters, where GPUs is empty, their number
	GPUs []cluster.GPU
}

// Point is a moment at which something has happened and decisions can be made. Events are all events since the last
// point in order: first the decisions made there, then what happened at Now. A point is valid until the next Advance.
type Point struct {
	Now    time.Duration
	Events []Event
}

// Op is what a decision does.
type Op uint8

// The decisions.
const (
	Wait       Op = iota // end the point; continue to the next event, or to Until if that comes first
	StartJob             // give the GPUs to Job
	PreemptJob           // take Job's GPUs away; it waits again
	DropJob              // Job, which waits, leaves for good
	MigrateJob           // move Job, which runs, to GPUs: a gang of the same size
	ResizeJob            // run Job, which runs and is elastic, on GPUs (on a counter: on N) from now on
)

// Decision is one decision. GPUs is the whole gang, copied by Apply; empty on counters.
type Decision struct {
	Op    Op
	Job   Job
	GPUs  []cluster.GPU
	N     int           // GPUs of the gang, for ResizeJob and StartJob of an elastic job on a counter; 0 = as asked for
	Until time.Duration // Wait: also wake at this time; 0 = at the next event only
}

var (
	// ErrDone is returned by Advance when every job has finished or the horizon is reached.
	ErrDone = errors.New("sim: the run is over")
	// ErrWait is returned if waiting would never end although a job could start: nothing runs, nothing will arrive, no
	// node will recover and no timer is set.
	ErrWait = errors.New(
		"sim: nothing would ever happen: a job waits that could start, nothing runs and nothing will arrive")
	// ErrDecision is returned for a decision that is impossible; it changes nothing.
	ErrDecision = errors.New("sim: impossible decision")
	// ErrSnapshot is returned for bytes that are not a snapshot of a run with this configuration and workload.
	ErrSnapshot = errors.New("sim: not a snapshot of this run")
)
