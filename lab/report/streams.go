package report

import (
	"clustergym/env/sched"
	"clustergym/internal/statistic"
	"clustergym/simulator/sim"
)

// StreamReport is a comparison of policies on the same streams of jobs.
type StreamReport struct {
	Protocol    string      `json:"protocol"` // "streams"
	Env         string      `json:"env"`
	Metric      string      `json:"metric"` // by which policies are compared
	Streams     StreamsInfo `json:"streams"`
	Load        LoadInfo    `json:"load"`
	Assumptions Assumptions `json:"assumptions"`
	// Recorded is what the trace says of the counted jobs, which arrived as recorded; nil = it has no starts.
	Recorded *Recorded `json:"recorded,omitempty"`

	Policies []StreamPolicy `json:"policies"`
	// in Metric: the reference (StreamReport.Reference) with every other policy, or every policy with the first
	Paired []statistic.Replicated `json:"paired"`
	// LeftOut counts the jobs of the workload that the environment does not take; nil = none.
	LeftOut *sched.LeftOut `json:"left_out,omitempty"`

	Estimates sim.Estimates `json:"estimates,omitzero"`
	Rung      string        `json:"rung,omitempty"`
}

// StreamsInfo says what was played. Units are independent of each other: draws of the generator, or blocks of time of
// the one recorded stream.
type StreamsInfo struct {
	Units    int       `json:"units"`
	Warm     int       `json:"warm_jobs"`    // of each stream, which do not count
	Counted  int       `json:"counted_jobs"` // of each stream
	Seed     uint64    `json:"seed"`         // eval.seed, from which all draws follow
	Settling *Settling `json:"warm_up,omitempty"`
	Blocks   *Blocks   `json:"blocks,omitempty"`
}

// Settling says how the length of the warm-up of draws was found.
type Settling struct {
	Least     int  `json:"least_jobs"`
	MSER      int  `json:"mser_5_jobs"` // what MSER-5 would discard of the pilots
	Settled   bool `json:"settled"`     // false: the queue of FIFO skip settles in no half of the pilots
	Warm      int  `json:"jobs"`
	Pilots    int  `json:"pilots"`
	PilotJobs int  `json:"pilot_jobs"`
}

// Blocks says how a recorded stream is cut.
type Blocks struct {
	Bins            int     `json:"bins"`                 // equal stretches of time
	Autocorrelation float64 `json:"autocorrelation_bins"` // of the number of jobs in the system under FIFO skip
	Length          int     `json:"block_bins"`
	Hours           float64 `json:"block_hours"`
}

// LoadInfo is the load of the counted jobs: the GPU time that they ask for, over that of the cluster while they arrive.
type LoadInfo struct {
	Asked   float64 `json:"asked"`   // to which the whole workload is stretched; 0 = as recorded
	Offered float64 `json:"offered"` // by what was played, the mean over draws
}

// Assumptions are what every comparison by simulation rests on.
type Assumptions struct {
	RunTimes      string `json:"run_times"`
	Placement     string `json:"placement"`
	Communication string `json:"communication"`
	Stops         string `json:"stops"`
}

// StreamPolicy is the result of one policy.
type StreamPolicy struct {
	Name    string         `json:"name"`
	Kind    string         `json:"kind"` // as of PolicyReport
	Metrics *StreamMetrics `json:"metrics,omitempty"`
	Missing string         `json:"missing,omitempty"`
	Trained sim.Estimates  `json:"trained_on,omitzero"`
	Nothing bool           `json:"asks_nothing,omitempty"`
	Knows   bool           `json:"knows_workload,omitempty"`
	Greedy  string         `json:"greedy,omitempty"` // as in PolicyReport
}

// StreamMetrics are statistics over streams. Times are in seconds.
type StreamMetrics struct {
	JCT             StreamStatistic `json:"jct_s"`
	Wait            StreamStatistic `json:"wait_s"`
	FirstWait       StreamStatistic `json:"first_wait_s"`
	Slowdown        StreamStatistic `json:"slowdown"`
	BoundedSlowdown StreamStatistic `json:"bounded_slowdown"`
	JCT99           StreamStatistic `json:"jct_p99_s"`
	Use             StreamStatistic `json:"gpus_used"` // share of the GPU time while the counted jobs arrive
	// Growth is by how many jobs the number of jobs in the system grows for each job that arrives, and GrowthP the
	// probability of it if the true growth were 0.02: below 0.05 the policy does not keep up with the arrivals, and its
	// means grow with the length of the streams.
	Growth     StreamStatistic  `json:"growth"`
	GrowthP    statistic.Number `json:"growth_p"`
	KeepsUp    bool             `json:"keeps_up"`
	Unfinished int              `json:"unfinished"` // counted jobs, over all streams
	// After is the share of the counted jobs that ended when no job was left to arrive.
	After float64 `json:"ended_after_the_last_arrival"`
	// the environment's own metric, where it is none of these
	Score *StreamStatistic `json:"score,omitempty"`
}

// StreamStatistic is a mean over streams of means over their jobs.
type StreamStatistic struct {
	Mean statistic.Number   `json:"mean"`
	CI95 statistic.Interval `json:"ci95"`
	Per  []statistic.Number `json:"per_stream"`
}
