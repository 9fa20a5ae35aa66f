package run

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/internal/plain"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/nets/kernel"
	"clustergym/simulator/sim"
)

// SeedsReport combines the runs of several seeds. As JSON it is the document of gymctl train --seeds --json.
type SeedsReport struct {
	Env     string    `json:"env"`
	Agent   string    `json:"agent"`
	Kernels string    `json:"kernels"` // set of float32 kernels
	Dir     string    `json:"dir"`
	Metric  string    `json:"metric"` // return, higher is better, or what the environment counts, as jct_s
	Runs    []SeedRun `json:"seeds"`

	// Over all episodes (or windows) of all seeds, null where the runs were not evaluated.
	IQM        *float64    `json:"iqm"`
	Mean       *float64    `json:"mean"`
	CI95       *[2]float64 `json:"ci95"`      // of the IQM: seeds are drawn with replacement, then each one's episodes
	Solved     *float64    `json:"solved_at"` // mean return that counts as solved, null = none
	SolvedRuns *int        `json:"solved"`    // seeds that reach it

	// Paired compares all runs together with every baseline on the same windows: absent without a metric of windows.
	Paired []SeedsPaired `json:"paired,omitempty"`

	Estimates sim.Estimates `json:"estimates,omitzero"` // the environment's: what agents and baselines know of run times
	Rung      string        `json:"rung,omitempty"`     // theirs
}

// SeedsPaired compares the runs of all seeds with one baseline. The interval is over seeds and windows.
type SeedsPaired struct {
	statistic.Paired
	Ahead int `json:"seeds_ahead"` // seeds whose mean is better than the baseline's
}

// SeedRun is the result of one seed.
type SeedRun struct {
	Seed uint64 `json:"seed"`
	TrainResult
}

// scores returns the values by which runs are compared, one for each episode or window, and their metric.
func (r *TrainResult) scores() (metric string, values []float64) {
	metric, all, _ := report.Results(r.Eval)
	switch { // the checkpoint comes first
	case len(all) == 0:
		return "", nil
	case all[0].Score != nil:
		return metric, all[0].Score.PerWindow
	case all[0].Return == nil: // one recorded stream, whose single value says nothing of seeds
		return "", nil
	}
	return metric, all[0].Return.PerEpisode
}

func newSeedsReport(cfg *config.Config, dir string, results []TrainResult) *SeedsReport {
	r := &SeedsReport{Env: cfg.Env.ID, Agent: cfg.Agent, Kernels: kernel.Set(), Dir: dir}
	r.Estimates = cfg.Estimates()
	r.Rung = report.RungOf(r.Estimates)
	var all [][]float64
	var flat []float64
	solved := 0
	for i, res := range results {
		r.Runs = append(r.Runs, SeedRun{cfg.Seed + uint64(i), res})
		metric, values := res.scores()
		if values == nil {
			continue
		}
		r.Metric = metric
		all, flat = append(all, values), append(flat, values...)
		if e, ok := res.Eval.(*report.EpisodeReport); ok && e.Solved != nil {
			r.Solved = e.Solved
			if statistic.Mean(values) >= *e.Solved {
				solved++
			}
		}
	}
	if len(all) < len(results) {
		return r
	}
	iqm, mean, ci := statistic.IQM(flat), statistic.Mean(flat), bootstrapSeeds(cfg.Eval.Seed, all)
	r.IQM, r.Mean, r.CI95 = &iqm, &mean, &ci
	if r.Solved != nil {
		r.SolvedRuns = &solved
	}
	r.pair(cfg, all)
	return r
}

// pair fills in Paired. all are the values of the runs, by window.
func (r *SeedsReport) pair(cfg *config.Config, all [][]float64) {
	if r.Metric == report.Return {
		return
	}
	higher := report.MetricOf(r.Env).Higher
	for _, of := range scoresOf(r.Runs[0].Eval)[1:] {
		other := of.Score.PerWindow
		p := SeedsPaired{Paired: statistic.CompareRuns(cfg.Eval.Seed, r.Agent, of.Name, r.Metric, all, other, higher)}
		for _, run := range all {
			if mean := statistic.Mean(run); mean != statistic.Mean(other) && mean < statistic.Mean(other) != higher {
				p.Ahead++
			}
		}
		r.Paired = append(r.Paired, p)
	}
}

// bootstrapSeeds returns the 95 % percentile interval of the IQM over [seed][episode]: each resample draws seeds with
// replacement and, within each seed, its episodes. So it includes the variation between sets of seeds.
func bootstrapSeeds(seed uint64, values [][]float64) [2]float64 {
	r := rand.New(rng.Source(seed, "bootstrap/seeds"))
	var drawn []float64
	out := make([]float64, statistic.Draws)
	for d := range out {
		drawn = drawn[:0]
		for range values {
			row := values[r.IntN(len(values))]
			for range row {
				drawn = append(drawn, row[r.IntN(len(row))])
			}
		}
		slices.Sort(drawn)
		out[d] = statistic.SortedIQM(drawn)
	}
	slices.Sort(out)
	return [2]float64{statistic.Quantile(out, .025), statistic.Quantile(out, .975)}
}

// WriteTable prints a row for each seed and one for all.
func (r *SeedsReport) WriteTable(w io.Writer) error { return texttable.WriteSheets(w, r.Sheets()) }

// Sheets returns what WriteTable prints.
func (r *SeedsReport) Sheets() []texttable.Sheet {
	if r.IQM == nil {
		var rows [][]string
		for _, s := range r.Runs {
			rows = append(rows, []string{fmt.Sprint(s.Seed), fmt.Sprint(s.Step), meanReturn(s.Return), s.Checkpoint})
		}
		return []texttable.Sheet{{Above: report.EstimatesHeader(r.Estimates), Title: ofSeeds, Header: []string{"seed",
			"steps", "return in training", "checkpoint"}, Rows: rows, Left: 1}}
	}
	if r.Metric == report.Return {
		return []texttable.Sheet{r.returns()}
	}
	m := report.MetricOf(r.Env)
	var rows [][]string
	for _, s := range r.Runs {
		of := scoresOf(s.Eval)[0]
		rows = append(rows,
			[]string{fmt.Sprint(s.Seed), of.Name, m.Cell(of.Score.Mean), m.SpanCell(of.Score.IQM, of.Score.CI95), "", ""})
	}
	rows = append(rows, []string{"all", "", m.Cell(*r.Mean), m.SpanCell(*r.IQM, *r.CI95), "", ""})
	others := scoresOf(r.Runs[0].Eval)[1:]
	for i, p := range r.Paired {
		of := others[i].Score
		rows = append(rows, []string{"", others[i].Name, m.Cell(of.Mean), m.SpanCell(of.IQM, of.CI95),
			report.PairedText(p.Paired), fmt.Sprintf("%d of %d", p.Ahead, len(r.Runs))})
	}
	texttable.OneUnit(rows)
	var known []report.Knowledge
	if e, ok := r.Runs[0].Eval.(*report.Report); ok {
		for _, p := range e.Policies {
			known = append(known, report.Knowledge{Name: p.Name, Nothing: p.Nothing})
		}
	}
	return []texttable.Sheet{{
		Above: report.EstimatesHeader(r.Estimates),
		Title: ofSeeds, Header: []string{"seed", "policy", m.Title, "IQM [95 %]", "agents vs it [95 %]", "seeds ahead"},
		Rows: rows, Left: 2,
		Below: fmt.Sprintf("%s on the same windows; the interval for all seeds draws seeds, then the windows of each.\n",
			plain.Count(len(r.Runs), "seed", "seeds")) +
			fmt.Sprintf(
				"agents vs it: difference of %s, all seeds together, on the same windows; the interval draws seeds and windows.\n",
				m.Title) +
			report.Below(r.Estimates, known),
	}}
}

const ofSeeds = "Runs of several seeds"

// scoresOf returns the policies of a comparison that have its metric, the checkpoint first.
func scoresOf(c arena.Comparison) []report.Result {
	_, all, _ := report.Results(c)
	return slices.DeleteFunc(all, func(r report.Result) bool { return r.Score == nil })
}

// returns is the sheet of a problem with a known answer.
func (r *SeedsReport) returns() texttable.Sheet {
	header := []string{"seed", "policy", "mean return", "std", "IQM [95 %]", "worst"}
	if r.Solved != nil {
		header = append(header, "solved")
	}
	var rows [][]string
	worst, episodes := math.Inf(1), 0
	for _, s := range r.Runs {
		e := s.Eval.(*report.EpisodeReport)
		p := &e.Policies[0]
		low := slices.Min(p.Return.PerEpisode)
		worst, episodes = min(worst, low), e.Episodes
		row := []string{fmt.Sprint(s.Seed), p.Name, report.Decimals(p.Return.Mean), report.Decimals(p.Return.Std),
			report.Interval(p.Return.IQM, p.Return.CI95), report.Decimals(low)}
		if p.Solved != nil {
			row = append(row, report.YesNo(*p.Solved))
		}
		rows = append(rows, row)
	}
	row := []string{"all", "", report.Decimals(*r.Mean), "", report.Interval(*r.IQM, *r.CI95), report.Decimals(worst)}
	if r.SolvedRuns != nil {
		row = append(row, fmt.Sprintf("%d of %d", *r.SolvedRuns, len(r.Runs)))
	}
	threshold := ""
	if r.Solved != nil {
		threshold = fmt.Sprintf("Solved: a mean return of at least %g.\n", *r.Solved)
	}
	return texttable.Sheet{
		Title: ofSeeds, Header: header, Rows: append(rows, row), Left: 2, Least: []string{"std", "worst"},
		Below: fmt.Sprintf(
			"%s: %s, %s each, the same for all; the interval for all seeds draws seeds, then the\nepisodes of each.\n%s",
			r.Env, plain.Count(len(r.Runs), "seed", "seeds"), plain.Count(episodes, "episode", "episodes"), threshold),
	}
}

// meanReturn returns a return as text, a dash before the first episode has ended.
func meanReturn(v *float64) string {
	if v == nil {
		return "-"
	}
	return report.Decimals(*v)
}
