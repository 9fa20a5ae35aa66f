package report

import (
	"encoding/json"
	"io"
	"math"

	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
)

// Comparison is the result of an evaluation: a *StreamReport, a *Report over windows of a workload, an *EpisodeReport,
// an *AdaptReport, a *StreamLadder or a *Ladder. As JSON it is the document of gymctl eval --json.
type Comparison interface {
	WriteTable(w io.Writer) error
	Sheets() []texttable.Sheet // what WriteTable prints
}

// Read reads the document of a comparison. Its keys say which kind it is of.
func Read(b []byte) (c Comparison, err error) {
	var kind struct{ Protocol, Episodes, Tasks, Rungs json.RawMessage }
	if err := json.Unmarshal(b, &kind); err != nil {
		return nil, err
	}
	switch {
	case kind.Protocol != nil && kind.Rungs != nil:
		c = new(StreamLadder)
	case kind.Protocol != nil:
		c = new(StreamReport)
	case kind.Episodes != nil:
		c = new(EpisodeReport)
	case kind.Tasks != nil:
		c = new(AdaptReport)
	case kind.Rungs != nil:
		c = new(Ladder)
	default:
		c = new(Report)
	}
	return c, json.Unmarshal(b, c)
}

// Result is what one policy reaches in a comparison.
type Result struct {
	Name, Kind string
	// Score is by the comparison's metric, nil where there is none or it does not apply. On draws of a generator its
	// values are those of draws; a recorded stream has a single value, of which nothing is described.
	Score  *statistic.Statistic
	Stream *StreamStatistic  // on streams, by the comparison's metric; else nil
	Return *EpisodeStatistic // nil on windows, and for planners
}

// Return is the metric of comparisons that count the sum of rewards.
const Return = "return"

// Results returns what policies reach on the same windows, streams or episodes, the metric by which they are compared,
// and their differences in it; none for other comparisons. Differences on streams have no wins, and no interval where
// there are too few units: its ends are then NaN.
func Results(c Comparison) (metric string, all []Result, paired []statistic.Paired) {
	switch r := c.(type) {
	case *Report:
		metric = r.Counts().Key
		for i := range r.Policies {
			p := &r.Policies[i]
			x := Result{Name: p.Name, Kind: p.Kind}
			if p.Metrics != nil && (p.Metrics.Score != nil || !r.HasScores()) {
				s := r.Statistic(p)
				x.Score = &s
			}
			all = append(all, x)
		}
		for _, p := range r.Paired {
			if p.Metric == metric {
				paired = append(paired, p)
			}
		}
	case *StreamReport:
		metric = r.Counts().Key
		for i := range r.Policies {
			all = append(all, r.result(&r.Policies[i]))
		}
		for _, p := range r.Paired {
			paired = append(paired, statistic.Paired{A: p.A, B: p.B, Metric: p.Metric, Difference: float64(p.Difference),
				CI95: [2]float64(p.CI95), WinRate: math.NaN()})
		}
	case *EpisodeReport:
		metric, paired = Return, r.Paired
		if r.Metric != "" {
			metric = r.Metric
		}
		for _, p := range r.Policies {
			all = append(all, Result{Name: p.Name, Kind: p.Kind, Score: p.Score, Return: p.Return})
		}
	}
	return metric, all, paired
}

// result returns what a policy reaches on streams.
func (r *StreamReport) result(p *StreamPolicy) Result {
	x := Result{Name: p.Name, Kind: p.Kind}
	if p.Metrics == nil {
		return x
	}
	s := r.Statistic(p)
	x.Stream = &s
	if r.Streams.Blocks == nil && len(s.Per) > 0 {
		values := make([]float64, len(s.Per))
		for i, v := range s.Per {
			values[i] = float64(v)
		}
		d := statistic.Describe(r.Streams.Seed, statistic.Sample{values})
		x.Score = &d
	}
	return x
}
