package run

import (
	"fmt"
	"io"
	"math"
	"slices"

	"clustergym/env"
	"clustergym/experiments/statistic"
	"clustergym/experiments/texttable"
	"clustergym/experiments/workload"
	"clustergym/nets/kernel"
)

// EpisodeReport is a comparison of policies on the same episodes of an environment without a workload.
type EpisodeReport struct {
	Env      string          `json:"env"`
	Solved   *float64        `json:"solved_at"` // mean return that counts as solved, null = none
	Episodes int             `json:"episodes"`
	Seed     uint64          `json:"seed"`    // from which the episodes' own are drawn
	Kernels  string          `json:"kernels"` // set of float32 kernels
	Policies []EpisodePolicy `json:"policies"`
}

// EpisodePolicy is what one policy did.
type EpisodePolicy struct {
	Name   string           `json:"name"`
	Kind   string           `json:"kind"` // checkpoint or baseline
	Return EpisodeStatistic `json:"return"`
	Length float64          `json:"length_mean"` // steps
	Solved *bool            `json:"solved"`      // whether the mean return reaches solved_at, null where that is
}

// EpisodeStatistic describes the returns of one policy.
type EpisodeStatistic struct {
	Mean       float64    `json:"mean"`
	Std        float64    `json:"std"` // over the episodes, divided by their number
	IQM        float64    `json:"iqm"`
	CI95       [2]float64 `json:"ci95"` // of the IQM
	PerEpisode []float64  `json:"per_episode"`
}

func newEpisodeReport(s env.Spec, cfg *Config) *EpisodeReport {
	return &EpisodeReport{Env: s.ID, Solved: number(s.Solved), Episodes: cfg.Eval.Episodes, Seed: cfg.Eval.Seed, Kernels: kernel.Set()}
}

// add describes one policy's games.
func (r *EpisodeReport) add(name, kind string, g games) {
	s := statistic.Describe(r.Seed, statistic.Sample{g.returns})
	p := EpisodePolicy{Name: name, Kind: kind, Length: statistic.Mean(g.lengths), Return: EpisodeStatistic{
		Mean: s.Mean, Std: deviation(g.returns), IQM: s.IQM, CI95: s.CI95, PerEpisode: g.returns,
	}}
	if r.Solved != nil {
		solved := s.Mean >= *r.Solved
		p.Solved = &solved
	}
	r.Policies = append(r.Policies, p)
}

// deviation is the standard deviation of v.
func deviation(v []float64) float64 {
	mean, squares := statistic.Mean(v), 0.0
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return math.Sqrt(squares / float64(len(v)))
}

// WriteTable prints the comparison for people.
func (r *EpisodeReport) WriteTable(w io.Writer) error {
	header := []string{"policy", "mean return", "std", "IQM [95 %]", "worst", "mean length"}
	if r.Solved != nil {
		header = append(header, "solved")
	}
	var rows [][]string
	for _, p := range r.Policies {
		row := []string{
			p.Name, decimals(p.Return.Mean), decimals(p.Return.Std), interval(p.Return.IQM, p.Return.CI95),
			decimals(slices.Min(p.Return.PerEpisode)), fmt.Sprintf("%.1f", p.Length),
		}
		if p.Solved != nil {
			row = append(row, yesNo(*p.Solved))
		}
		rows = append(rows, row)
	}
	if err := texttable.Write(w, header, rows, 1); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s: %s from seed %d, the same for all and none of the training's; IQM with its 95 %% bootstrap interval.\n%s",
		r.Env, workload.Plural(r.Episodes, "episode", "episodes"), r.Seed, r.threshold())
	return err
}

// threshold is the sentence about what counts as solved.
func (r *EpisodeReport) threshold() string {
	if r.Solved == nil {
		return ""
	}
	return fmt.Sprintf("Solved: a mean return of at least %g.\n", *r.Solved)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// decimals prints a return with as many places as it takes to tell returns of its size apart.
func decimals(v float64) string {
	places := 1
	if math.Abs(v) < 10 {
		places = 3
	}
	return fmt.Sprintf("%.*f", places, v)
}

func interval(v float64, ci [2]float64) string {
	return fmt.Sprintf("%s [%s, %s]", decimals(v), decimals(ci[0]), decimals(ci[1]))
}
