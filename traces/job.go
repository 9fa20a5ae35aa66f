package traces

import (
	"fmt"
	"math"
	"time"
)

// MaxTime is the latest time and the longest work that a run takes, 146 years. It is half of what a time.Duration
// holds, so that the sum of two times is always one.
const MaxTime = math.MaxInt64 / 2

// Job is one row of a workload, as recorded or generated. It never changes after creation; what happens to a
// job at run time lives in simulator/sim.
type Job struct {
	ID    string // as in the file; a run identifies jobs by their position
	User  string // "" when the trace does not say; likewise VC and Model
	VC    string // virtual cluster or queue
	Model string
	// Name is that of the job, its script or its executable, as in the file: jobs of one user with one name are
	// repetitions of each other. "" = not given.
	Name  string
	Group string // group of users, or a tag that the trace gives recurring jobs; "" = not given

	Submit   time.Duration // offset from the trace's origin, never negative
	Work     time.Duration // run time alone on the GPUs asked for, at the reference speed and the best placement
	Estimate time.Duration // requested or predicted run time, which may be wrong; 0 = not given

	GPUs             int      // gang size: all of them or none; 0 = cores and memory only
	MinGPUs, MaxGPUs int      // elastic range; 0 = not elastic
	GPUMilli         int      // share of each GPU in thousandths; 1000 = whole
	GPUTypes         []string // any of these; nil = all

	CPUMilli   int64 // for the whole gang, thousandths of a core; 0 = not given
	MemBytes   int64 // main memory for the whole gang, bytes; 0 = not given
	Iterations int64
	Batch      int // examples in one iteration, all GPUs together; 0 = not given
	Priority   int
	Deadline   time.Duration // offset from the origin; 0 = none
	// SLO is the deadline as a multiple of Work, counted from Submit, for traces that give it this way; 0 = none. Code
	// that sets Work of such a job must set Deadline too.
	SLO    float64
	Status Status
	// Started says that the trace has a start of the job, and Waited how long after Submit that was. They are what
	// happened on the recorded cluster: no simulation may depend on them. Documents that have jobs keep their bytes.
	Started bool          `json:"-"`
	Waited  time.Duration `json:"-"`
	// Eligible is how long after Submit the recorded cluster might start the job at the earliest: a begin time, another
	// job that had to end first or a hold kept it until then. 0 = at once, or not given. Waits count from Submit.
	Eligible time.Duration `json:"-"`
	// Nodes is the number of nodes that the job had or, if it never ran, asked for; 0 = the trace does not say.
	Nodes int `json:"-"`
	// Hosts names the nodes on which the job ran last, as a list that package hostlist expands: g[01-03,07],h1. "" = the
	// trace does not say.
	Hosts string `json:"-"`
	// Open says that the trace ends before the job does. Only readers that are asked for such jobs give them.
	Open Open `json:"-"`
	// Stops are how much of Work was done each time that the job was requeued, where a reader was asked for that. They are
	// what happened on the recorded cluster; the job's start is that of its first run.
	Stops []time.Duration `json:"-"`
	// Assumed says that Estimate is no requested time: the reader has set it to Work, for orders and back-filling that
	// need one. Predictors of run times must not look at it.
	Assumed bool

	Profile *Profile // of the model; nil = not known
	Graph   *Graph   // of jobs that are task graphs; nil for others
}

// Open says where a job was when its trace ended. Its times are then bounds (they are censored): Work of a job that
// was still running is how long it had run until then, which it exceeds, and Work of one that was still waiting is what
// it had run before it was sent back to the queue, mostly 0.
type Open uint8

// Where a job was at the end of its trace.
const (
	Ended Open = iota
	StillRunning
	StillWaiting
)

func (o Open) String() string { return [...]string{"ended", "still running", "still waiting"}[o] }

// MaxGPUs is the largest gang that readers accept. It keeps sums of demands in thousandths far inside an int64.
const MaxGPUs = 1 << 30

// CheckTimes returns an error if a time of j is not one that a run takes: from 0 to MaxTime. A deadline may be later,
// as it only is compared.
func (j *Job) CheckTimes() error {
	for _, t := range []struct {
		what string
		d    time.Duration
	}{{"is submitted at", j.Submit}, {"works", j.Work}, {"is estimated to work", j.Estimate}} {
		if t.d < 0 || t.d > MaxTime {
			return fmt.Errorf("job %s %s %v, want a time from 0s to 146 years, where the clock ends", j.ID, t.what, t.d)
		}
	}
	return nil
}

// Start records that the job started at a time on the clock of Submit. It ignores a time before Submit.
func (j *Job) Start(at time.Duration) {
	if at >= j.Submit {
		j.Started, j.Waited = true, at-j.Submit
	}
}

// Milli returns the job's demand in thousandths of a GPU.
func (j *Job) Milli() int { return j.GPUs * j.GPUMilli }

// GPUHours returns the job's demand, run time × GPUs; shared GPUs count by their share. It is 0 for a job without work.
func (j *Job) GPUHours() float64 { return max(0, j.Work.Hours()) * float64(max(0, j.Milli())) / 1000 }

// Status is how a job ended according to its trace.
type Status uint8

// The ways in which a job may have ended.
const (
	StatusUnknown Status = iota
	Completed
	Failed
	Cancelled
)

func (s Status) String() string {
	return [...]string{"unknown", "completed", "failed", "cancelled"}[s]
}
