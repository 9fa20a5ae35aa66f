package report

import (
	"fmt"
	"io"
	"math"
	"slices"

	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
	"clustergym/lab/envs"
	"clustergym/simulator/policyname"
)

// EpisodeReport is a comparison of policies on the same episodes of an environment without a workload.
type EpisodeReport struct {
	Env      string          `json:"env"`
	Solved   *float64        `json:"solved_at"` // mean return that counts as solved, null = none
	Episodes int             `json:"episodes"`
	Seed     uint64          `json:"seed"`    // from which the episodes' own are drawn
	Kernels  string          `json:"kernels"` // set of float32 kernels
	Policies []EpisodePolicy `json:"policies"`

	// Metric is what a scheduling environment counts, "" for a problem with a known answer; Paired compares the first
	// checkpoint by it with every other policy, on the same episodes.
	Metric string             `json:"metric,omitempty"`
	Paired []statistic.Paired `json:"paired,omitempty"`

	File string `json:"-"` // that the episodes are recorded in, "" = they are generated
}

// EpisodePolicy is the result of one policy.
type EpisodePolicy struct {
	Name string `json:"name"`
	// checkpoint, baseline, slots (a rule in the action space) or planner
	Kind   string               `json:"kind"`
	Return *EpisodeStatistic    `json:"return"`           // null for planners, which do not act step by step
	Length *float64             `json:"length_mean"`      // steps
	Solved *bool                `json:"solved"`           // whether the mean return reaches solved_at, null where that is
	Score  *statistic.Statistic `json:"score,omitempty"`  // the metric, where there is one
	Greedy string               `json:"greedy,omitempty"` // as in PolicyReport
}

// EpisodeStatistic describes the returns of one policy.
type EpisodeStatistic struct {
	Mean       float64    `json:"mean"`
	Std        float64    `json:"std"` // over the episodes, divided by their number
	IQM        float64    `json:"iqm"`
	CI95       [2]float64 `json:"ci95"` // of the IQM
	PerEpisode []float64  `json:"per_episode"`
}

// Add adds a policy with the returns and lengths of its episodes, which a planner does not have.
func (r *EpisodeReport) Add(name, kind string, returns, lengths []float64) {
	p := EpisodePolicy{Name: name, Kind: kind}
	if kind != "planner" {
		length := statistic.Mean(lengths)
		p.Length, p.Return = &length, Returns(r.Seed, returns)
		if r.Solved != nil {
			solved := p.Return.Mean >= *r.Solved
			p.Solved = &solved
		}
	}
	r.Policies = append(r.Policies, p)
}

// AddScores adds the metric of every policy, and the comparisons.
func (r *EpisodeReport) AddScores(m envs.Metric, scores []statistic.Sample) {
	r.Metric = m.Key
	for i := range r.Policies {
		s := statistic.Describe(r.Seed, scores[i])
		r.Policies[i].Score = &s
	}
	for a := range r.Policies {
		if k := r.Policies[a].Kind; k != KindCheckpoint && k != KindModel {
			continue
		}
		for b := range r.Policies {
			if a != b {
				r.Paired = append(r.Paired,
					statistic.Compare(r.Seed, r.Policies[a].Name, r.Policies[b].Name, m.Key, scores[a], scores[b], m.Higher))
			}
		}
	}
}

// Returns describes the returns of one policy; seed is that of the bootstrap draws.
func Returns(seed uint64, returns []float64) *EpisodeStatistic {
	s := statistic.Describe(seed, statistic.Sample{returns})
	return &EpisodeStatistic{Mean: s.Mean, Std: deviation(returns), IQM: s.IQM, CI95: s.CI95, PerEpisode: returns}
}

// deviation returns the standard deviation of v.
func deviation(v []float64) float64 {
	mean, squares := statistic.Mean(v), 0.0
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return math.Sqrt(squares / float64(len(v)))
}

// WriteTable prints the comparison as a table.
func (r *EpisodeReport) WriteTable(w io.Writer) error { return texttable.WriteSheets(w, r.Sheets()) }

// Sheets returns what WriteTable prints.
func (r *EpisodeReport) Sheets() []texttable.Sheet {
	if r.Metric != "" {
		return []texttable.Sheet{r.scores()}
	}
	header := []string{"policy", "mean return", "std", "IQM [95 %]", "worst", "mean length"}
	if r.Solved != nil {
		header = append(header, "solved")
	}
	var rows [][]string
	for _, p := range r.Policies {
		row := []string{
			p.Name, Decimals(p.Return.Mean), Decimals(p.Return.Std), Interval(p.Return.IQM, p.Return.CI95),
			Decimals(slices.Min(p.Return.PerEpisode)), fmt.Sprintf("%.1f", *p.Length),
		}
		if p.Solved != nil {
			row = append(row, YesNo(*p.Solved))
		}
		rows = append(rows, row)
	}
	return []texttable.Sheet{{
		Title: onEpisodes, Header: header, Rows: rows, Left: 1, Least: []string{"std", "worst", "mean length"},
		Below: fmt.Sprintf(
			"%s: %s from seed %d, the same for every policy and not used in training; IQM with its 95 %% bootstrap interval.\n%s",
			r.Env, plain.Count(r.Episodes, "episode", "episodes"), r.Seed, r.threshold()) + r.rules(),
	}}
}

const onEpisodes = "Policies on the same test episodes"

// scores is the sheet of a scheduling environment.
func (r *EpisodeReport) scores() texttable.Sheet {
	metric := MetricOf(r.Env)
	header := []string{"policy", metric.Title, "IQM [95 %]", "mean return", "mean length"}
	versus, reference := map[string]statistic.Paired{}, ""
	for _, p := range r.Paired {
		if reference == "" {
			reference = p.A
			header = append(header, "agent vs it [95 %]", "wins")
		}
		if p.A == reference {
			versus[p.B] = p
		}
	}
	var rows [][]string
	for _, p := range r.Policies {
		row := []string{p.Name, metric.Cell(p.Score.Mean), metric.SpanCell(p.Score.IQM, p.Score.CI95), "", ""}
		if p.Return != nil {
			row[3], row[4] = Decimals(p.Return.Mean), fmt.Sprintf("%.1f", *p.Length)
		}
		if reference != "" {
			row = append(row, difference(versus, p.Name), wins(versus, p.Name, r.Episodes))
		}
		rows = append(rows, row)
	}
	texttable.OneUnit(rows)
	from := fmt.Sprintf("from seed %d", r.Seed)
	if r.File != "" {
		from = "of " + r.File
	}
	planners, rules := "", ""
	for _, p := range r.Policies {
		switch p.Kind {
		case "planner":
			planners = "\nPLANNER decides with the whole graph in sight."
		case "slots":
			rules = "\n" + policyname.RuleForm + " acts through the agent's actions."
		}
	}
	below := fmt.Sprintf(
		"%s: %s %s, the same for every policy and not used in training:\nmeans over episodes, IQM with its 95 %% bootstrap "+
			"interval.%s%s\n",
		r.Env, plain.Count(r.Episodes, "test episode", "test episodes"), from, planners, rules)
	if reference != "" {
		below += fmt.Sprintf("agent vs it: difference of %s on the same episodes, %s = %s is better.\n", metric.Title,
			better(metric), reference)
	}
	return texttable.Sheet{Title: onEpisodes, Header: header, Rows: rows, Left: 1,
		Least: []string{"mean length", "mean return", "wins"}, Below: below + r.rules()}
}

// better returns the sign of a difference that means that the first policy is better.
func better(m envs.Metric) string {
	if m.Higher {
		return "positive"
	}
	return "negative"
}

// difference returns the cell of the comparison with the policy called name, "" if there is none.
func difference(versus map[string]statistic.Paired, name string) string {
	v, ok := versus[name]
	if !ok {
		return ""
	}
	return PairedText(v)
}

// PairedText returns a paired difference as tables show it: -3.1 % [-5.0, -1.2].
func PairedText(p statistic.Paired) string {
	return fmt.Sprintf("%+.1f %% [%+.1f, %+.1f]", p.Difference, p.CI95[0], p.CI95[1])
}

// wins returns the cell that counts on how many of the episodes or windows the reference was better.
func wins(versus map[string]statistic.Paired, name string, of int) string {
	v, ok := versus[name]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d of %d", v.Wins, of)
}

// threshold returns the sentence about what counts as solved, "" if there is no threshold.
func (r *EpisodeReport) threshold() string {
	if r.Solved == nil {
		return ""
	}
	return fmt.Sprintf("Solved: a mean return of at least %g.\n", *r.Solved)
}

// YesNo returns "yes" or "no".
func YesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// Decimals returns a return as text, with enough decimal places to tell returns of its size apart.
func Decimals(v float64) string {
	places := 1
	if math.Abs(v) < 10 {
		places = 3
	}
	return fmt.Sprintf("%.*f", places, v)
}

// Interval returns a return with its interval as text.
func Interval(v float64, ci [2]float64) string {
	return fmt.Sprintf("%s [%s, %s]", Decimals(v), Decimals(ci[0]), Decimals(ci[1]))
}
