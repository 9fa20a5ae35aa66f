package report

import (
	"fmt"
	"io"

	"clustergym/internal/plain"
	"clustergym/internal/texttable"
)

// AdaptReport is a comparison of how well policies adapt to the same tasks.
type AdaptReport struct {
	Env     string     `json:"env"`
	Solved  *float64   `json:"solved_at"` // mean return after adaptation that counts as solved, null = none
	Tasks   int        `json:"tasks"`
	Seed    uint64     `json:"seed"`
	Kernels string     `json:"kernels"`
	Rows    []AdaptRow `json:"rows"`
}

// AdaptRow is one policy after a number of inner steps.
type AdaptRow struct {
	Name     string           `json:"name"`
	Steps    int              `json:"inner_steps"`
	Episodes int              `json:"episodes_seen"` // of the task, before
	Return   EpisodeStatistic `json:"return"`        // one number for each task
	Greedy   float64          `json:"greedy_mean"`   // mean return of the most likely actions
	PerStep  float64          `json:"per_step"`      // greedy return by steps
	Gain     float64          `json:"gain"`          // of the mean return over that without adaptation
	Solved   *bool            `json:"solved"`
	// OverRandom is the difference to random play on the same tasks, in a scheduling environment.
	OverRandom *Difference `json:"over_random,omitempty"`
}

// WriteTable prints the comparison as a table.
func (r *AdaptReport) WriteTable(w io.Writer) error { return texttable.WriteSheets(w, r.Sheets()) }

// Sheets returns what WriteTable prints.
func (r *AdaptReport) Sheets() []texttable.Sheet {
	header := []string{"policy", "inner steps", "episodes seen", "mean return", "IQM [95 %]", "gain", "greedy",
		"greedy a step"}
	if r.Solved != nil {
		header = append(header, "solved")
	}
	if r.Rows[0].OverRandom != nil {
		header = append(header, "over random [95 %]")
	}
	var rows [][]string
	for _, p := range r.Rows {
		row := []string{
			p.Name, fmt.Sprint(p.Steps), fmt.Sprint(p.Episodes), Decimals(p.Return.Mean), Interval(p.Return.IQM, p.Return.CI95),
			Decimals(p.Gain), Decimals(p.Greedy), fmt.Sprintf("%.3f", p.PerStep),
		}
		if p.Solved != nil {
			row = append(row, YesNo(*p.Solved))
		}
		if d := p.OverRandom; d != nil {
			row = append(row, Interval(d.Mean, d.CI95))
		}
		rows = append(rows, row)
	}
	below := fmt.Sprintf(
		"%s: %s from seed %d, the same for every policy and not used in training. Every inner step learns from new\n"+
			"episodes of the task; returns are those of other episodes. IQM over the tasks with its 95 %% bootstrap interval.\n",
		r.Env, plain.Count(r.Tasks, "task", "tasks"), r.Seed)
	if r.Solved != nil {
		below += fmt.Sprintf("Solved: a mean return of at least %g after adaptation.\n", *r.Solved)
	}
	return []texttable.Sheet{{
		Title: "Policies on the same test tasks", Header: header, Rows: rows, Left: 1,
		Least: []string{"greedy a step", "greedy", "episodes seen", "mean return"}, Below: below,
	}}
}

// Difference is the mean difference of two policies' returns on the same tasks, with its 95 % bootstrap interval.
type Difference struct {
	Mean float64    `json:"mean"`
	CI95 [2]float64 `json:"ci95"`
}
