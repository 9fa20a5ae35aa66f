package report

import (
	"fmt"
	"math"

	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
)

// Recorded is what happened to the counted jobs of a recorded stream on their own cluster, and what models of its
// scheduler make of the same jobs: whether the simulation is that cluster.
type Recorded struct {
	Jobs   int              `json:"jobs"`      // counted ones whose start is recorded
	Wait   statistic.Number `json:"wait_s"`    // their mean wait until the first start
	Use    statistic.Number `json:"gpus_used"` // share of the cluster's GPU time while they arrive, by all jobs with a start
	Model  string           `json:"model"`     // the one of Models whose mean wait is closest
	Models []RecordedModel  `json:"models"`
}

// RecordedModel is the simulation of the recorded jobs under one model of the cluster's scheduler.
type RecordedModel struct {
	Name string           `json:"name"`
	Wait statistic.Number `json:"wait_s"`
	Use  statistic.Number `json:"gpus_used"`
}

// Closest chooses Model.
func (r *Recorded) Closest() {
	least := math.Inf(1)
	for _, m := range r.Models {
		if d := math.Abs(float64(m.Wait - r.Wait)); d < least {
			least, r.Model = d, m.Name
		}
	}
}

// farWait is the relative error of the closest model's wait above which a simulation is said not to be the cluster.
const farWait = .2

// String says it in one line.
func (r *Recorded) String() string {
	text := fmt.Sprintf("recorded: mean wait %s, GPUs used %.0f %%", texttable.Hours(float64(r.Wait)), 100*float64(r.Use))
	for _, m := range r.Models {
		if m.Name != r.Model {
			continue
		}
		text += fmt.Sprintf("; the same jobs under %s, the closest of %d models of its scheduler: %s, %.0f %%", m.Name,
			len(r.Models), texttable.Hours(float64(m.Wait)), 100*float64(m.Use))
		if math.Abs(float64(m.Wait-r.Wait)) > farWait*float64(r.Wait) {
			text += ": this simulation is not the recorded cluster"
		}
	}
	return text
}
