package dally

import (
	"fmt"
	"slices"

	"clustergym/experiments/study"
)

// shareText formats a share of congestion for labels.
func shareText(c float64) string { return fmt.Sprintf("%g %%", 100*c) }

// congestedLine returns the labels of the line of the table congestion with which the paper's figures are compared.
func congestedLine(share, policy string) map[string]string {
	return map[string]string{"workload": "dally-multi", "net": "slow", "congestion": share, "policy": policy}
}

// tables returns the tables of the report.
func (s *settings) tables(study.Plan) []study.Table {
	var shares []string
	for _, c := range s.Congestion {
		shares = append(shares, shareText(c))
	}
	policies := everyPolicy()
	against := func(title, metric string) []study.Column {
		return []study.Column{
			{Title: title + " vs Tiresias", Metric: metric, Stat: study.Percent, Versus: map[string]string{"policy": tiresiasLease}},
			{Title: title + " vs Gandiva", Metric: metric, Stat: study.Percent, Versus: map[string]string{"policy": gandiva}},
			{Title: title + " vs las-2d", Metric: metric, Stat: study.Percent, Versus: map[string]string{"policy": tiresiasLAS}},
		}
	}
	figures := []study.Column{
		{Title: "mean JCT (h)", Metric: "jct_h"}, {Title: "makespan (h)", Metric: "makespan_h"}, {Title: "communication (h)", Metric: "comm_h"},
	}
	effects := slices.Concat(against("JCT", "jct_h"), against("makespan", "makespan_h"), against("communication", "comm_h"))
	compared := study.Hide(slices.Concat(figures, effects), "makespan (h)", "communication (h)", "JCT vs Gandiva", "JCT vs las-2d", "makespan vs Tiresias", "makespan vs Gandiva", "makespan vs las-2d",
		"communication vs Tiresias", "communication vs Gandiva", "communication vs las-2d")
	vs := func(title, policy string) study.Column {
		return study.Column{Title: title, Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": policy}}
	}
	only := func(names []string) func(map[string]string) bool {
		return func(line map[string]string) bool { return slices.Contains(names, line["policy"]) }
	}
	orders := study.Hide([]study.Column{
		vs("JCT vs Tiresias", tiresiasLease), vs("vs leases together", tiresiasTogether), vs("vs Dally, tuned", tunedTimers), vs("vs Gandiva", gandiva),
		vs("vs las-2d consolidated", lasSkewed),
	}, "vs Dally, tuned", "vs Gandiva", "vs las-2d consolidated")
	return []study.Table{
		{
			Name: "order", Title: "Delay scheduling in the order of attained GPU-time, by workload and network", From: "schedulers",
			By: []string{"workload", "net", "policy"}, Keep: only(append(lasPolicies(), tiresiasTogether)),
			Order: map[string][]string{"policy": policies, "net": nets(), "workload": workloads()}, Columns: orders,
		},
		{
			Name: "order-congestion", Title: "The same as others take bandwidth between machines", From: "congestion",
			By: []string{"workload", "net", "congestion", "policy"}, Keep: only(append(lasPolicies(), tiresiasTogether)),
			Order:   map[string][]string{"policy": policies, "congestion": shares, "net": nets(), "workload": workloads()},
			Columns: orders,
		},
		{
			Name: "overheads", Title: "What stops cost: seconds for each GPU of a gang that is stopped or moved",
			By: []string{"workload", "net", "overhead", "policy"}, Order: map[string][]string{"policy": append(everyPolicy(), gandivaHours), "overhead": s.Overheads, "net": nets(), "workload": workloads()},
			Columns: study.Hide([]study.Column{
				{Title: "mean JCT (h)", Metric: "jct_h"}, vs("JCT vs Tiresias", tiresiasLease), vs("vs leases together", tiresiasTogether), vs("vs Gandiva", gandiva), vs("vs its turns of an hour", gandivaHours),
			}, "vs leases together", "vs Gandiva", "vs its turns of an hour"),
		},
		{
			Name: "leases", Title: "Leases and clusters, with as much work for each GPU",
			By:    []string{"workload", "net", "cluster", "lease", "policy"},
			Order: map[string][]string{"policy": policies, "cluster": s.Clusters, "lease": s.Leases, "net": nets(), "workload": workloads()},
			Columns: study.Hide([]study.Column{
				{Title: "mean JCT (h)", Metric: "jct_h"}, vs("JCT vs Tiresias", tiresiasLease), vs("vs leases together", tiresiasTogether), vs("vs Dally, tuned", tunedTimers),
			}, "mean JCT (h)", "vs Dally, tuned"),
		},
		{
			Name: "schedulers", Title: "Schedulers by workload and network, in this simulator",
			By: []string{"workload", "net", "policy"}, Order: map[string][]string{"policy": policies, "net": nets(), "workload": workloads()},
			Columns: compared,
		},
		{
			Name: "congestion", Title: "Dally against Tiresias and Gandiva as others take bandwidth between machines",
			By:      []string{"workload", "net", "congestion", "policy"},
			Order:   map[string][]string{"policy": policies, "congestion": shares, "net": nets(), "workload": workloads()},
			Columns: compared,
		},
		{
			Name: "timers", Title: "The timers: tuned against fixed, and against none", From: "schedulers", Keep: only(timerPolicies()),
			By: []string{"workload", "net", "policy"}, Order: map[string][]string{"policy": policies, "net": nets(), "workload": workloads()},
			Columns: []study.Column{
				{Title: "JCT vs timers 5/10", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": fixedTimers}},
				{Title: "JCT vs accept at once", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": acceptAtOnce}},
				{Title: "communication vs timers 5/10", Metric: "comm_h", Stat: study.Percent, Versus: map[string]string{"policy": fixedTimers}, Hidden: true},
			},
		},
		{
			Name: "machines", Title: "The machine of Dally's authors beside this simulator, the same jobs (network slow)",
			By: []string{"workload", "policy", "machine"}, Order: map[string][]string{"machine": machines(), "policy": {"Dally, tuned timers", "Dally, timers 5/10", "Tiresias", "Gandiva"}},
			Columns: figures,
		},
		{
			Name: "effects", Title: "Dally against the others on each machine", From: "machines",
			By: []string{"workload", "machine", "policy"}, Order: map[string][]string{"machine": machines(), "policy": {"Dally, tuned timers", "Dally, timers 5/10"}},
			Columns: []study.Column{
				{Title: "JCT vs Tiresias", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": "Tiresias"}},
				{Title: "JCT vs Gandiva", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": "Gandiva"}},
				{Title: "makespan vs Tiresias", Metric: "makespan_h", Stat: study.Percent, Versus: map[string]string{"policy": "Tiresias"}, Hidden: true},
				{Title: "makespan vs Gandiva", Metric: "makespan_h", Stat: study.Percent, Versus: map[string]string{"policy": "Gandiva"}, Hidden: true},
				{Title: "communication vs Tiresias", Metric: "comm_h", Stat: study.Percent, Versus: map[string]string{"policy": "Tiresias"}, Hidden: true},
				{Title: "communication vs Gandiva", Metric: "comm_h", Stat: study.Percent, Versus: map[string]string{"policy": "Gandiva"}, Hidden: true},
			},
		},
		{
			Name: "acceptors", Title: "DelayOffer-v1: who answers the offers (test windows of dally-multi, network slow)",
			By: []string{"order", "acceptor"}, Order: map[string][]string{"order": askings(), "acceptor": {delayLAS, learnedGreedy, learnedDrawing, learnedBlind, tunedTimers, fixedTimers, waitForNearest, longGiveWay, acceptAtOnce, randomAnswers}},
			Columns: []study.Column{
				{Title: "mean JCT (h)", Metric: "jct_h"}, {Title: "communication (h)", Metric: "comm_h", Hidden: true},
				{Title: "JCT vs tuned timers", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"acceptor": tunedTimers}},
				{Title: "JCT vs timers 5/10", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"acceptor": fixedTimers}, Hidden: true},
				{Title: "JCT vs giving way", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"acceptor": longGiveWay}},
				{Title: "JCT vs delay-las", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"acceptor": delayLAS, "order": "las"}, Hidden: true},
				{Title: "windows won against tuned timers", Metric: "jct_h", Stat: study.Wins, Versus: map[string]string{"acceptor": tunedTimers}, Hidden: true},
				{Title: "offers accepted", Metric: "accepted", Format: study.Share, Bare: true, Hidden: true},
			},
		},
	}
}

// figures returns the drawings of the report.
func (s *settings) figures(study.Plan) []study.Figure {
	lines := func(column string) func(r *study.Results) []study.Series {
		return func(r *study.Results) []study.Series {
			var all []study.Series
			for _, policy := range []string{delayLAS, tunedTimers, tiresiasLease, tiresiasTogether, lasSkewed, gandiva} {
				one := study.Series{Name: policy}
				for _, c := range s.Congestion {
					if v, _, ok := r.Find("congestion", congestedLine(shareText(c), policy), column); ok {
						one.Points = append(one.Points, study.Point{X: 1 / (1 - c), Y: v.Value, Low: v.Low, High: v.High})
					}
				}
				all = append(all, one)
			}
			return all
		}
	}
	return []study.Figure{
		{Name: "jct", Title: "Mean JCT as bandwidth between machines becomes scarce", X: "times less bandwidth (dally-multi, network slow)", Y: "mean JCT (h)", LogX: true, LogY: true, Ours: []string{delayLAS}, Series: lines("mean JCT (h)")},
		{Name: "communication", Title: "Communication as bandwidth between machines becomes scarce", X: "times less bandwidth (dally-multi, network slow)", Y: "communication (h)", LogX: true, LogY: true, Ours: []string{delayLAS}, Series: lines("communication (h)")},
	}
}
