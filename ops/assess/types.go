package assess

import (
	"math"
	"time"

	"clustergym/internal/statistic"
)

// Assessment is what a record says. Times are in seconds, use is a share from 0 to 1.
type Assessment struct {
	File    string  `json:"file"`
	Cluster Cluster `json:"cluster"`
	// First are the sentences of the first screen, Sure how far to believe them, Surer what would make them surer.
	First []string `json:"first_screen"`
	Sure  string   `json:"how_sure"`
	Surer string   `json:"surer_by"`
	Head  Headline `json:"headline"`

	Recorded    Recorded    `json:"recorded"`
	Models      []Model     `json:"incumbent_models"` // the closest first
	Incumbent   string      `json:"incumbent"`
	Calibration Calibration `json:"calibration"`
	Policies    []Policy    `json:"policies"`
	Best        string      `json:"best_policy"` // whose gain is certain; "" = none
	Changes     *Changes    `json:"changes"`     // under the best of the policies, whether its gain is certain or not
	WhatIfs     []WhatIf    `json:"what_ifs"`
	Learned     *Learned    `json:"learned,omitempty"` // from the first half; nil = not asked for
	LeftOut     LeftOut     `json:"left_out"`
	Notes       []string    `json:"notes"`

	curves []curve
}

// Cluster is where the jobs ran.
type Cluster struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	GPUs  int    `json:"gpus"`
}

// Headline has the three numbers of the first screen: mean waits.
type Headline struct {
	Today float64 `json:"today_s"`
	Order *Number `json:"another_order"` // null = none is shown to help
	More  *Number `json:"more_gpus"`
	Added int     `json:"added_gpus"`
}

// Number is a mean wait with its interval.
type Number struct {
	Wait float64             `json:"wait_s"`
	CI   *statistic.Interval `json:"ci95_s"` // null = too little time to say
}

// Recorded is what the file itself says of jobs with GPUs.
type Recorded struct {
	From  *time.Time `json:"from"` // null = the file's times are not dates
	To    *time.Time `json:"to"`
	Span  float64    `json:"span_s"`
	Jobs  int        `json:"jobs"` // that started
	Mean  float64    `json:"mean_wait_s"`
	P50   float64    `json:"p50_s"`
	P90   float64    `json:"p90_s"`
	Use   float64    `json:"gpu_use"`
	Hours float64    `json:"gpu_hours"`
	Sizes []Group    `json:"by_gpus"`
	// Owners are the accounts with the most GPU time, or the users if the file has no accounts (OwnersAre).
	Owners    []Group `json:"by_owner"`
	OwnersAre string  `json:"owners_are"`
	// Week are mean waits by hour of the week, from Monday 00:00; without From, from the first submit. A job counts in the
	// hour of its submit.
	Week []Hour `json:"by_hour_of_week"`
}

// Group is a part of the jobs.
type Group struct {
	Name  string  `json:"name"`
	Jobs  int     `json:"jobs"`
	Share float64 `json:"gpu_time_share"`
	Mean  float64 `json:"mean_wait_s"`
	P50   float64 `json:"p50_s"`
	P90   float64 `json:"p90_s"`
}

// Hour is an hour of the week.
type Hour struct {
	Jobs int     `json:"jobs"`
	Mean float64 `json:"mean_wait_s"`
}

// Model is a model of the scheduler that ran. First and second are halves of the recorded time.
type Model struct {
	Name       string           `json:"name"`
	Text       string           `json:"rule"`
	Placement  string           `json:"placement"`
	Knows      string           `json:"knows"`
	Error      statistic.Number `json:"mean_absolute_error_s"` // of single waits, first half
	Mean       statistic.Number `json:"mean_wait_s"`           // first half
	Second     statistic.Number `json:"second_half_mean_absolute_error_s"`
	SecondMean statistic.Number `json:"second_half_mean_wait_s"`
	Wait       statistic.Number `json:"counted_mean_wait_s"` // of the jobs by which policies are compared
	NotPlayed  string           `json:"not_played,omitempty"`
}

// Calibration compares the best model with what happened.
type Calibration struct {
	First      int                 `json:"first_half_jobs"` // by which the model was chosen
	Second     int                 `json:"second_half_jobs"`
	Real       float64             `json:"second_half_real_mean_wait_s"`
	Model      float64             `json:"second_half_model_mean_wait_s"`
	Percent    *float64            `json:"second_half_error_percent"` // of the mean wait; null where nothing waited
	All        *float64            `json:"error_percent"`             // of all counted jobs
	CI95       *statistic.Interval `json:"ci95"`                      // of All
	Margin     *float64            `json:"margin_percent"`            // by which intervals are widened
	Near       float64             `json:"within_a_minute"`           // share of the jobs of the second half
	Corr       *float64            `json:"correlation"`
	Jobs       int                 `json:"counted_jobs"`
	Blocks     int                 `json:"blocks"`
	Block      float64             `json:"block_s"`
	Quantities [][3]float64        `json:"quantiles"` // quantile, real, model: of the second half
}

// Policy is a policy on the counted jobs.
type Policy struct {
	Name  string `json:"name"`
	Role  string `json:"role"` // recorded, incumbent, rival, oracle; in Learned also default, tuned, agent
	Knows string `json:"knows"`
	Effect
	P90     float64           `json:"p90_s"`
	Longest float64           `json:"p99_s"`
	Verdict statistic.Verdict `json:"verdict,omitempty"`
	Never   int               `json:"never_started,omitempty"`
	says    string            // what it does, in plain words
	// blocks that would show a difference of 3 %, 0 = not known
	unitsFor int
}

// Effect is a mean wait compared with that under the model of the incumbent.
type Effect struct {
	Mean    float64  `json:"mean_wait_s"`             // of the play
	Percent *float64 `json:"against_model_percent"`   // below 0 is shorter; null = not compared, or nothing waited
	Of      *float64 `json:"recorded_wait_then_s"`    // the recorded mean wait, changed by Percent
	Blocks  *ci      `json:"ci95_of_blocks_percent"`  // over blocks of time; null = too few
	CI      *ci      `json:"ci95_percent"`            // and of the model's error
	Then    *ci      `json:"recorded_wait_then_ci95"` // as CI, of Of
}

// ci is an interval.
type ci = statistic.Interval

// Changes say who would gain and who would lose under a policy.
type Changes struct {
	Policy string   `json:"policy"`
	Knows  string   `json:"knows"`
	Losers float64  `json:"longer_share"` // share of the jobs that would wait more than a minute longer
	P95    float64  `json:"longer_p95_s"` // of these, how much longer at most, of 95 %
	Sizes  []Change `json:"by_gpus"`
	Owners []Change `json:"by_account"`
	Users  []Change `json:"by_user"`
}

// Change is what a policy changes for a part of the jobs.
type Change struct {
	Name   string  `json:"name"`
	Jobs   int     `json:"jobs"`
	Model  float64 `json:"model_mean_wait_s"`
	Then   float64 `json:"policy_mean_wait_s"`
	Change float64 `json:"change_s"`
	Losers float64 `json:"longer_share"`
	P95    float64 `json:"longer_p95_s"`
}

// WhatIf is a changed cluster, or changed limits, under the model of the incumbent and under the best policy.
type WhatIf struct {
	Name  string  `json:"name"`
	GPUs  int     `json:"gpus"` // of the cluster then
	Today *Effect `json:"model"`
	Best  *Effect `json:"policy"`
	Never int     `json:"never_fit,omitempty"` // jobs that the changed cluster cannot run, and does not count
}

// LeftOut counts what the comparison does not have.
type LeftOut struct {
	Rows    []Reason `json:"rows,omitempty"` // that the reader dropped, by reason
	CPUOnly int      `json:"cpu_only"`
	Never   int      `json:"never_fit"`
	Why     []string `json:"never_fit_why,omitempty"`
	Share   float64  `json:"never_fit_gpu_time_share"`
	Running int      `json:"still_running"`
	Waiting int      `json:"still_waiting"`
	Limits  int      `json:"limits_missing"`
}

// number is NaN for infinite values.
func number(x float64) statistic.Number {
	if math.IsInf(x, 0) {
		x = math.NaN()
	}
	return statistic.Number(x)
}
