package lwf

import (
	"slices"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
)

// settings are the keys of one section of experiment.yaml, quick or full.
type settings struct {
	Draws      int     `yaml:"draws"`       // workloads of the tables of rules and placements
	Spans      []int64 `yaml:"spans"`       // seconds in which the jobs arrive, in the table of loads
	SpanDraws  int     `yaml:"span_draws"`  // workloads of each
	FluidSpans []int64 `yaml:"fluid_spans"` // the same in the table beside simulator/sim
	FluidDraws int     `yaml:"fluid_draws"`
	// PaperDraws and FluidPaperDraws are numbers of workloads of the paper's scale, each of which takes a hundred times as
	// long. The plan's number of seeds does not change them.
	PaperDraws      int `yaml:"paper_draws"`
	FluidPaperDraws int `yaml:"fluid_paper_draws"`
}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	for _, n := range []struct {
		key string
		n   int
	}{{"draws", s.Draws}, {"span_draws", s.SpanDraws}, {"fluid_draws", s.FluidDraws}} {
		l.Add(n.n >= 1 && n.n <= 100000, n.key, n.n, "1 to 100000")
	}
	l.Add(s.PaperDraws >= 0 && s.PaperDraws <= 100000, "paper_draws", s.PaperDraws, "0 to 100000")
	l.Add(s.FluidPaperDraws >= 0 && s.FluidPaperDraws <= 100000, "fluid_paper_draws", s.FluidPaperDraws, "0 to 100000")
	for _, n := range []struct {
		key  string
		list []int64
	}{{"spans", s.Spans}, {"fluid_spans", s.FluidSpans}} {
		l.Add(len(n.list) > 0, n.key, n.list, "one number of seconds or more")
		for i, v := range n.list {
			l.Add(v >= 1 && v <= 1e6 && !slices.Contains(n.list[:i], v), n.key, v, "seconds, 1 to 1000000, each once")
		}
	}
	return l.Err()
}

// settingsOf returns the settings of p's form, quick or full, with p's number of seeds.
func settingsOf(p study.Plan) (settings, error) {
	s, err := study.Settings("lwf", files, p, settings{})
	s.Draws, s.SpanDraws, s.FluidDraws = p.SeedsOr(s.Draws), p.SeedsOr(s.SpanDraws), p.SeedsOr(s.FluidDraws)
	return s, err
}
