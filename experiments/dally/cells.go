package dally

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"clustergym/experiments/study"
	"clustergym/traces"
)

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal settings.
const method = 4

// cells returns the study's units of work: schedulers on generated and recorded workloads, congestion, the authors' machine,
// and the acceptors of offers.
func cells(p study.Plan) ([]study.Cell, error) {
	s, err := settingsOf(p)
	if err != nil {
		return nil, err
	}
	files, err := findRecorded(p.Data)
	if err != nil {
		return nil, err
	}
	var all []study.Cell
	every := []string{tunedTimers, fixedTimers, acceptAtOnce, waitForNearest, tiresiasLease, tiresiasLAS, gandiva}
	schedulers := func(key, workload, net, table string, labels map[string]string, congestion float64, policies []string, jobs func() ([]traces.Job, error), input any) {
		all = append(all, study.Cell{
			Key: key, Input: []any{method, workload, net, congestion, policies, input},
			Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				spec, err := clusterOn(net, congestion)
				if err != nil {
					return nil, err
				}
				list, err := jobs()
				if err != nil {
					return nil, err
				}
				var rows []study.Row
				for i, policy := range policies {
					got, err := playHere(ctx, list, spec, policy)
					if err != nil {
						return nil, err
					}
					rows = append(rows, got.rows(table, with(labels, "policy", policy))...)
					if table == "schedulers" && slices.Contains(timerPolicies(), policy) {
						rows = append(rows, got.rows("timers", with(labels, "policy", policy))...)
					}
					b.Progress(int64(i+1), int64(len(policies)))
				}
				return rows, nil
			},
		})
	}
	for _, workload := range s.Workloads {
		for _, net := range s.Nets {
			for d := range s.Draws {
				labels := map[string]string{"workload": workload, "net": net, "draw": fmt.Sprint(d)}
				schedulers(fmt.Sprintf("schedulers/%s/%s/%d", workload, net, d), workload, net, "schedulers", labels, 0, every,
					func() ([]traces.Job, error) { return drawJobs(workload, s.Jobs, d) }, []int{s.Jobs, d})
			}
		}
	}
	for _, o := range files {
		for _, net := range s.Nets {
			labels := map[string]string{"workload": o.name, "net": net, "draw": "0"}
			schedulers(fmt.Sprintf("schedulers/%s/%s", o.name, net), o.name, net, "schedulers", labels, 0, every, o.jobs, o.sha)
		}
	}
	some := []string{tunedTimers, fixedTimers, waitForNearest, tiresiasLease, tiresiasLAS, gandiva}
	for _, at := range s.CongestionAt {
		workload, net, _ := strings.Cut(at, "/")
		for _, c := range s.Congestion {
			for d := range s.CongestionDraws {
				labels := map[string]string{"workload": workload, "net": net, "congestion": shareText(c), "draw": fmt.Sprint(d)}
				schedulers(fmt.Sprintf("congestion/%s/%g/%d", at, c, d), workload, net, "congestion", labels, c, some,
					func() ([]traces.Job, error) { return drawJobs(workload, s.Jobs, d) }, []int{s.Jobs, d})
			}
		}
	}
	for _, workload := range []string{"dally-batch", "dally-multi"} {
		for d := range s.PeerDraws {
			all = append(all, machinesCell(fmt.Sprintf("machines/%s/%d", workload, d), workload, fmt.Sprint(d),
				func() ([]traces.Job, error) { return drawJobs(workload, s.PeerJobs, d) }, nil, []int{s.PeerJobs, d}))
		}
	}
	for _, o := range files {
		if o.exact != nil {
			all = append(all, machinesCell("machines/"+o.name, o.name, "0", o.jobs, o.exact, o.sha))
		}
	}
	return append(all, acceptorCells(s)...), nil
}

// with returns a copy of labels with one more.
func with(labels map[string]string, name, value string) map[string]string {
	all := maps.Clone(labels)
	all[name] = value
	return all
}
