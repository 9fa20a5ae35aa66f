package runpage

import (
	"cmp"
	"slices"
	"strings"

	"clustergym/lab/arena"
	"clustergym/lab/report"
)

// schedules draws the agent's schedule of one test window beside that of SJF, or else of the best baseline.
func (d *drawing) schedules() error {
	scenario, ok := d.arena.(*arena.Scenario)
	if !ok || len(d.page.Results) == 0 {
		return nil
	}
	result := &d.page.Results[0]
	r, ok := result.Comparison.(*report.Report)
	if !ok {
		return nil
	}
	agent, other := pair(r)
	if agent == nil {
		d.note("No schedule is drawn: no policy of this comparison can be played again.")
		return nil
	}
	opt := d.page.Evaluated
	if result.Checkpoint != "" {
		opt.Checkpoints = []string{result.Checkpoint}
	}
	window := typical(r, agent, other)
	seen := []*report.PolicyReport{agent}
	if other != nil {
		seen = append(seen, other)
	}
	for _, p := range seen {
		first, err := scenario.Watch(d.ctx, *d.cfg, opt, p.Name, window, d.html.Run(r.Shown(p.Name)))
		if err != nil {
			return err
		}
		d.html.Warmup, d.html.Focus = first, true // the jobs before it only fill the cluster
	}
	w := &r.Windows[window]
	how := "the first test window"
	if other != nil {
		how = "the test window in which the two differ by the median of all windows"
	}
	d.note("Schedules, %s %s: window %d of %d, %s. It has %d jobs, from job %d of the workload on; others were there "+
		"before it and are drawn from its first submit on, without counting in the completion times.",
		report.EstimatesKey, r.Estimates.Label(), window+1, len(r.Windows), how, w.Jobs, w.FirstJob)
	return nil
}

// pair returns the agent, or without one the first policy, and what its schedule is drawn beside: SJF, or else the best
// of the others. External policies cannot be played again. other is nil if no other policy can be played.
func pair(r *report.Report) (agent, other *report.PolicyReport) {
	var can []*report.PolicyReport
	for i := range r.Policies {
		if p := &r.Policies[i]; p.Metrics != nil && p.Kind != report.KindExternal &&
			(p.Metrics.Score != nil || !r.HasScores()) {
			can = append(can, p)
		}
	}
	if len(can) == 0 {
		return nil, nil
	}
	agent = can[0]
	for _, p := range can {
		if p.Kind == report.KindCheckpoint || p.Kind == report.KindModel {
			agent = p
			break
		}
	}
	can = slices.DeleteFunc(can, func(p *report.PolicyReport) bool {
		return p == agent ||
			p.Kind == report.KindCheckpoint
	})
	if len(can) == 0 {
		return agent, nil
	}
	if i := slices.IndexFunc(can,
		func(p *report.PolicyReport) bool { return p.Name == "sjf" || strings.HasPrefix(p.Name, "sjf+") }); i >= 0 {
		return agent, can[i]
	}
	better := 1.0
	if r.Counts().Higher {
		better = -1
	}
	return agent, slices.MinFunc(can, func(a, b *report.PolicyReport) int {
		return cmp.Compare(better*r.Statistic(a).Mean, better*r.Statistic(b).Mean)
	})
}

// typical returns the window in which two policies differ by the median of all windows.
func typical(r *report.Report, a, b *report.PolicyReport) int {
	if b == nil {
		return 0
	}
	x, y := r.Statistic(a).PerWindow, r.Statistic(b).PerWindow
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare((x[i]-y[i])/y[i], (x[k]-y[k])/y[k]) })
	return order[(len(order)-1)/2]
}
