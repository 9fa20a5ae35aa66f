package simulate

import (
	"fmt"
	"io"
	"path/filepath"

	"clustergym/env/sim"
	"clustergym/experiments/schedview"
	"clustergym/experiments/workload"
)

// SchedulePage shows what Simulate does as one HTML page that needs nothing beside itself: Observe goes into
// SimHooks, and Write follows when Simulate is through.
type SchedulePage struct{ page *schedview.Page }

// NewSchedulePage is the page of a Simulate with cfg.
func NewSchedulePage(cfg Config) *SchedulePage {
	p := schedview.New(len(cfg.Policies))
	p.Warmup, p.Tail = cfg.Warmup, cfg.Tail
	return &SchedulePage{page: p}
}

// Observe adds the run of policy.
func (p *SchedulePage) Observe(policy string) sim.Observer { return p.page.Run(policy) }

// Write writes the page with the table that r prints.
func (p *SchedulePage) Write(w io.Writer, r *Report) error {
	if len(r.Runs) == 0 {
		return nil
	}
	first, page := &r.Runs[0], p.page
	page.Title = fmt.Sprintf("Schedules of %s on %s", filepath.Base(r.Info.File), first.Cluster.Name)
	page.Facts = [][2]string{
		{"workload", r.Info.String()},
		{"cluster", fmt.Sprintf("%s: %s, %s", first.Cluster.Name, workload.Plural(first.Cluster.Nodes, "node", "nodes"), workload.Plural(first.Cluster.GPUs, "GPU", "GPUs"))},
		{"placement", first.Placement},
		{"estimates", first.Estimates},
	}
	page.Header, page.Rows = r.table()
	page.Notes = r.Notes
	return page.Write(w)
}
