package lwf

import (
	"clustergym/experiments/study"
	"clustergym/internal/fault"
)

// settings are the keys of one section of experiment.yaml, quick or full.
type settings struct {
	Draws      int     `yaml:"draws"`      // workloads of the tables of rules and placements
	Spans      []int64 `yaml:"spans"`      // seconds in which the jobs arrive, in the table of loads
	SpanDraws  int     `yaml:"span_draws"` // workloads of each
	FluidSpans []int64 `yaml:"fluid_spans"`
	FluidDraws int     `yaml:"fluid_draws"`
	// PaperDraws and FluidPaperDraws are numbers of workloads of the paper's scale, each of which takes a hundred times as long.
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
	for key, n := range map[string]int{"paper_draws": s.PaperDraws, "fluid_paper_draws": s.FluidPaperDraws} {
		l.Add(n >= 0 && n <= 100000, key, n, "0 to 100000")
	}
	for key, list := range map[string][]int64{"spans": s.Spans, "fluid_spans": s.FluidSpans} {
		l.Add(len(list) > 0, key, list, "one number of seconds or more")
		for _, v := range list {
			l.Add(v >= 1 && v <= 1e6, key, v, "seconds, 1 to 1000000")
		}
	}
	return l.Err()
}

// settingsOf returns the settings of p's form, quick or full, with p's number of seeds.
func settingsOf(p study.Plan) (settings, error) {
	s, err := study.Settings("lwf", settingsYAML, p, settings{})
	s.Draws, s.SpanDraws, s.FluidDraws = p.SeedsOr(s.Draws), p.SeedsOr(s.SpanDraws), p.SeedsOr(s.FluidDraws)
	return s, err
}
