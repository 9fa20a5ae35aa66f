package rundir

import (
	"fmt"

	"clustergym/internal/plain"
	"clustergym/internal/texttable"
	"clustergym/lab/envs"
)

// Line is one record of progress.jsonl, or the line of a validation, which has only Step and Eval. Timing contains
// everything that depends on the machine: all other fields are the same for the same seed on any machine and with any
// number of workers, unless Note says otherwise.
type Line struct {
	Step     int64              `json:"step"`
	Episodes int64              `json:"episodes"`
	Updates  int64              `json:"updates"`
	Kernels  string             `json:"kernels,omitempty"`
	Note     string             `json:"note,omitempty"` // of a run that follows the clock: config.NotRepeatable
	Return   *float64           `json:"return_mean"`
	Length   *float64           `json:"length_mean"`
	Info     map[string]float64 `json:"info,omitempty"`
	Learn    map[string]float64 `json:"train,omitempty"`
	Eval     *Validation        `json:"eval,omitempty"`
	Timing   *Timing            `json:"timing,omitempty"`
}

// EvalLine is the line of a validation.
type EvalLine struct {
	Step int64       `json:"step"`
	Eval *Validation `json:"eval"`
}

// Validation is the result of a validation.
type Validation struct {
	Windows  int      `json:"windows,omitempty"`
	JCT      float64  `json:"jct_s,omitempty"` // geometric mean over the windows of their mean JCTs
	Draws    int      `json:"draws,omitempty"` // of the generator, or the one recorded stream, in place of windows
	Episodes int      `json:"episodes,omitempty"`
	Tasks    int      `json:"tasks,omitempty"`       // of a meta-learner: the return is that after adaptation
	Return   *float64 `json:"return_mean,omitempty"` // instead, for a problem with a known answer or eval.choose: return
	Score    *float64 `json:"score,omitempty"`       // instead, where the environment counts another metric than JCT
	Metric   string   `json:"metric,omitempty"`      // the metric of Score
	Mean     string   `json:"mean,omitempty"`        // the mean that Score is
	Best     bool     `json:"best"`

	Counts envs.Metric `json:"-"` // that Score is of
}

// At returns the validation as an entry of best.json for the checkpoint at step.
func (v *Validation) At(step int64) BestCheckpoint {
	switch {
	case v.Return != nil:
		return BestCheckpoint{step, BestReturn, *v.Return}
	case v.Score != nil:
		return BestCheckpoint{step, "validation/" + v.Metric + " " + v.Mean, *v.Score}
	}
	return BestCheckpoint{step, BestMetric, v.JCT}
}

// Beats returns whether v replaces the best so far. A lower JCT does, and so does a return that is not lower: many
// problems have a highest return, and of the checkpoints that reach it the latest has learned longest.
func (v *Validation) Beats(b BestCheckpoint) bool {
	switch value := v.At(0).Value; {
	case v.Return != nil:
		return value >= b.Value
	case v.Counts.Higher:
		return value > b.Value
	default:
		return value < b.Value
	}
}

// Words returns the score as text.
func (v *Validation) Words() string {
	if v.Tasks > 0 {
		return fmt.Sprintf("validation: mean return %.2f after adapting to %s", *v.Return,
			plain.Count(v.Tasks, "task", "tasks"))
	}
	if v.Return != nil {
		return fmt.Sprintf("validation: mean return %.2f of %s", *v.Return, plain.Count(v.Episodes, "episode", "episodes"))
	}
	if v.Score != nil {
		on := plain.Count(v.Episodes, "episode", "episodes")
		switch {
		case v.Draws > 0:
			on = plain.Count(v.Draws, "stream", "streams")
		case v.Windows > 0:
			on = plain.Count(v.Windows, "window", "windows")
		}
		return fmt.Sprintf("validation: %s %s on %s", v.Counts.Title, v.Counts.Show(*v.Score), on)
	}
	return "validation windows: typical JCT " + texttable.Hours(v.JCT)
}

// Timing is what depends on the machine.
type Timing struct {
	PerSecond float64 `json:"steps_per_s"` // since the training has begun or was resumed, without evaluations
	// Interval is that of the last interval that holds a whole update; nil in runs of earlier versions.
	Interval *float64 `json:"interval_steps_per_s,omitempty"`
	Wall     float64  `json:"wall_s"`
}
