package report

import (
	"clustergym/env/sched"
	"clustergym/internal/statistic"
	"clustergym/simulator/metrics"
	"clustergym/simulator/sim"
)

// Report is a comparison of policies on the same windows.
type Report struct {
	Windows  []WindowInfo       `json:"windows"`
	Policies []PolicyReport     `json:"policies"`
	Paired   []statistic.Paired `json:"paired"`
	Whole    *WholeReport       `json:"whole,omitempty"`
	// LeftOut counts the jobs of the workload that are in no window because the environment does not take them; nil =
	// none.
	LeftOut *sched.LeftOut `json:"left_out,omitempty"`

	// Env is the environment and Metric what it counts; both are "" for JobSelect-v1, which counts jct_s.
	Env    string `json:"env,omitempty"`
	Metric string `json:"metric,omitempty"`

	// Estimates are the environment's, env.estimates, and Rung is theirs: what the policies know of run times.
	Estimates sim.Estimates `json:"estimates,omitzero"`
	Rung      string        `json:"rung,omitempty"`

	// Stops says what a stop of a running job costs, "" if no policy stops jobs. Documents do not have it.
	Stops string `json:"-"`
}

// WindowInfo names one window: its episode's seed and its place in the workload.
type WindowInfo struct {
	Seed     uint64 `json:"seed"`
	FirstJob int    `json:"first_job"`
	Jobs     int    `json:"jobs"`
}

// PolicyReport is the result of one policy on all windows.
type PolicyReport struct {
	Name    string         `json:"name"`
	Kind    string         `json:"kind"` // heuristic, slots, checkpoint or external
	Metrics *PolicyMetrics `json:"metrics,omitempty"`
	// Missing says how far an external policy came that did not finish. It then has no metrics and no comparisons.
	Missing string `json:"missing,omitempty"`
	// Trained are the estimates of a checkpoint's own run. Nothing is set for schedulers that do not ask for run
	// times, so that they are the same on every rung; rules in the action space depend on what the environment shows.
	Trained sim.Estimates `json:"trained_on,omitzero"`
	Nothing bool          `json:"asks_nothing,omitempty"`
	Knows   bool          `json:"knows_workload,omitempty"` // it knows all jobs of a window beforehand
	// Greedy is the rule by which an agent chooses its actions, as eval.greedy names it, or own: it gives actions alone.
	// It is "" for a checkpoint that chooses as its kind of agent does unless it is told otherwise.
	Greedy string `json:"greedy,omitempty"`
}

// The kinds of agents. Agents are compared with every other policy.
const (
	KindCheckpoint = "checkpoint"
	KindModel      = "onnx" // a model of another program
	KindExternal   = "external"
)

// PolicyMetrics are statistics over windows of the metrics of package metrics.
type PolicyMetrics struct {
	JCT             statistic.Statistic `json:"jct_s"`
	Wait            statistic.Statistic `json:"wait_s"`
	FirstWait       statistic.Statistic `json:"first_wait_s"`
	Slowdown        statistic.Statistic `json:"slowdown"`
	BoundedSlowdown statistic.Statistic `json:"bounded_slowdown"`
	JCT99           statistic.Statistic `json:"jct_p99_s"`
	Makespan        statistic.Statistic `json:"makespan_s"`
	Utilization     statistic.Statistic `json:"gpu_utilization"`
	Effective       statistic.Statistic `json:"effective_utilization"`
	Unfinished      int                 `json:"unfinished"` // over all windows
	// the environment's own metric, where it is none of these
	Score *statistic.Statistic `json:"score,omitempty"`
}

// WholeReport is one run over the whole test part, without intervals. The first and last 5 % of its jobs are
// simulated and not counted.
type WholeReport struct {
	FirstJob int           `json:"first_job"`
	Jobs     int           `json:"jobs"`
	Counted  int           `json:"counted"`
	Policies []WholePolicy `json:"policies"`
}

// WholePolicy is the result of one policy on the whole test part.
type WholePolicy struct {
	Name    string          `json:"name"`
	Metrics metrics.Summary `json:"metrics"`
}
