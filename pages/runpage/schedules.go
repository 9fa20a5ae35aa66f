package runpage

import (
	"cmp"
	"slices"
	"strings"

	"clustergym/lab/arena"
	"clustergym/lab/report"
)

// schedules draws the agent's schedule of one test window, or of the first counted jobs of the first stream, next to
// that of SJF, or else of the best baseline.
func (d *drawing) schedules() error {
	scenario, ok := d.arena.(*arena.Scenario)
	if !ok || len(d.page.Results) == 0 {
		return nil
	}
	result := &d.page.Results[0]
	var can []playable
	var shown func(name string) string
	higher := false
	switch r := result.Comparison.(type) {
	case *report.Report:
		can, shown, higher = onWindows(r), r.Shown, r.Counts().Higher
	case *report.StreamReport:
		can, shown, higher = onStreams(r), r.Shown, r.Counts().Higher
	default:
		return nil
	}
	agent, other := pair(can, higher)
	if agent == nil {
		d.note("No schedule is drawn: no policy of this comparison can be played again.")
		return nil
	}
	opt := d.page.Evaluated
	if result.Checkpoint != "" {
		opt.Checkpoints = []string{result.Checkpoint}
	}
	window := 0
	if _, ok := result.Comparison.(*report.Report); ok {
		window = typical(agent, other)
	}
	seen := []*playable{agent}
	if other != nil {
		seen = append(seen, other)
	}
	var at arena.Watched
	for _, p := range seen {
		var err error
		at, err = scenario.Watch(d.ctx, *d.cfg, opt, p.name, window, d.html.Run(shown(p.name)))
		if err != nil {
			return err
		}
		d.html.Warmup, d.html.Jobs, d.html.Focus = at.First, at.Jobs, true // the jobs before it only fill the cluster
	}
	switch r := result.Comparison.(type) {
	case *report.Report:
		d.ofWindow(r, window, other != nil)
	case *report.StreamReport:
		d.ofStream(r, at)
	}
	return nil
}

// ofWindow says which window is drawn.
func (d *drawing) ofWindow(r *report.Report, window int, two bool) {
	w := &r.Windows[window]
	how := "the first test window"
	if two {
		how = "the test window in which the two differ by the median of all windows"
	}
	d.note("Schedules, %s %s: window %d of %d, %s. It has %d jobs, from job %d of the workload on; others were there "+
		"before it and are drawn from its first submit on, without counting in the completion times.",
		report.EstimatesKey, r.Estimates.Label(), window+1, len(r.Windows), how, w.Jobs, w.FirstJob)
}

// ofStream says which part of which stream is drawn.
func (d *drawing) ofStream(r *report.StreamReport, at arena.Watched) {
	which := "the first draw"
	if r.Streams.Blocks != nil {
		which = "the recorded stream"
	}
	d.note("Schedules, %s %s: the first %d counted jobs of %s, from the arrival of the first to the end of the last. "+
		"Jobs that were there before them or arrive after them are drawn, too, without counting in the completion times.",
		report.EstimatesKey, r.Estimates.Label(), at.Jobs, which)
}

// playable is a policy whose schedule can be drawn.
type playable struct {
	name, kind string
	mean       float64
	per        []float64 // by window
}

// onWindows returns the policies of a comparison that can be played again: external ones cannot.
func onWindows(r *report.Report) (can []playable) {
	for i := range r.Policies {
		if p := &r.Policies[i]; p.Metrics != nil && p.Kind != report.KindExternal &&
			(p.Metrics.Score != nil || !r.HasScores()) {
			s := r.Statistic(p)
			can = append(can, playable{p.Name, p.Kind, s.Mean, s.PerWindow})
		}
	}
	return can
}

// onStreams is onWindows for streams.
func onStreams(r *report.StreamReport) (can []playable) {
	for i := range r.Policies {
		if p := &r.Policies[i]; p.Metrics != nil && p.Kind != report.KindExternal {
			can = append(can, playable{name: p.Name, kind: p.Kind, mean: float64(r.Statistic(p).Mean)})
		}
	}
	return can
}

// pair returns the agent, or without one the first policy, and what its schedule is drawn next to: SJF, or else the
// best of the others. other is nil if no other policy can be played.
func pair(can []playable, higher bool) (agent, other *playable) {
	if len(can) == 0 {
		return nil, nil
	}
	agent = &can[0]
	for i := range can {
		if k := can[i].kind; k == report.KindCheckpoint || k == report.KindModel {
			agent = &can[i]
			break
		}
	}
	better := 1.0
	if higher {
		better = -1
	}
	for i := range can {
		p := &can[i]
		if p == agent || p.kind == report.KindCheckpoint {
			continue
		}
		if p.name == "sjf" || strings.HasPrefix(p.name, "sjf+") {
			return agent, p
		}
		if other == nil || better*p.mean < better*other.mean {
			other = p
		}
	}
	return agent, other
}

// typical returns the window in which two policies differ by the median of all windows.
func typical(a, b *playable) int {
	if b == nil {
		return 0
	}
	x, y := a.per, b.per
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare((x[i]-y[i])/y[i], (x[k]-y[k])/y[k]) })
	return order[(len(order)-1)/2]
}
