package run

import (
	"clustergym/internal/tfevents"
	"clustergym/lab/arena"
	"clustergym/lab/report"
)

// evaluated returns the evaluation of a run for TensorBoard: the agent's means as test/METRIC, those of the others as
// test/METRIC/POLICY, and the agent's paired differences as test/METRIC_difference_percent/POLICY. The agent comes
// first.
func evaluated(c arena.Comparison) (s []tfevents.Scalar) {
	add := func(tag string, v float64) { s = append(s, tfevents.Scalar{Tag: "test/" + tag, Value: v}) }
	const mean = "mean_reward"
	if r, ok := c.(*report.Report); ok {
		m := r.Policies[0].Metrics
		add("jct_s", m.JCT.Mean)
		add("wait_s", m.Wait.Mean)
		add("bounded_slowdown", m.BoundedSlowdown.Mean)
		add("gpu_utilization", m.Utilization.Mean)
	}
	if r, ok := c.(*report.StreamReport); ok && r.Policies[0].Metrics != nil {
		m := r.Policies[0].Metrics
		add("jct_s", float64(m.JCT.Mean))
		add("wait_s", float64(m.Wait.Mean))
		add("bounded_slowdown", float64(m.BoundedSlowdown.Mean))
		add("gpus_used", float64(m.Use.Mean))
	}
	metric, all, paired := report.Results(c)
	for i, p := range all {
		name := ""
		if i > 0 {
			name = "/" + p.Name
		}
		if p.Return != nil {
			add(mean+name, p.Return.Mean)
		}
		if metric+name == "jct_s" || metric+name == "bounded_slowdown" { // which are there
			continue
		}
		switch {
		case p.Stream != nil:
			add(metric+name, float64(p.Stream.Mean))
		case p.Score != nil:
			add(metric+name, p.Score.Mean)
		}
	}
	for _, p := range paired {
		if p.A == all[0].Name {
			add(metric+"_difference_percent/"+p.B, p.Difference)
		}
	}
	if r, ok := c.(*report.AdaptReport); ok {
		best := 0 // after the last inner step
		for i, p := range r.Rows {
			if p.Name == r.Rows[0].Name && p.Steps > r.Rows[best].Steps {
				best = i
			}
		}
		for i, p := range r.Rows {
			switch {
			case i == best:
				add(mean, p.Return.Mean)
			case p.Name != r.Rows[0].Name:
				add(mean+"/"+p.Name, p.Return.Mean)
			}
		}
	}
	return s
}
