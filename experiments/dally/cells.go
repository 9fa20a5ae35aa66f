package dally

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"clustergym/experiments/study"
	"clustergym/traces"
)

// cells returns the study's units of work: schedulers on generated and recorded workloads, congestion, the authors' machine,
// and the acceptors of offers.
func (s *settings) cells(p study.Plan) ([]study.Cell, error) {
	files, err := findRecorded(p.Data)
	if err != nil {
		return nil, err
	}
	var all []study.Cell
	add := func(key string, o outcome) { all = append(all, o.cell(key)) }
	for _, workload := range s.Workloads {
		for _, net := range s.Nets {
			for d := range s.Draws {
				add(fmt.Sprintf("schedulers/%s/%s/%d", workload, net, d), outcome{
					table: "schedulers", labels: map[string]string{"workload": workload, "net": net, "draw": fmt.Sprint(d)},
					workload: workload, net: net, policies: everyPolicy(), overhead: s.Overhead,
					jobs: func() ([]traces.Job, error) { return drawJobs(workload, s.Jobs, d) }, input: []int{s.Jobs, d},
				})
			}
		}
	}
	for _, o := range files {
		for _, net := range s.Nets {
			add(fmt.Sprintf("schedulers/%s/%s", o.name, net), outcome{
				table: "schedulers", labels: map[string]string{"workload": o.name, "net": net, "draw": "0"},
				workload: o.name, net: net, policies: everyPolicy(), overhead: s.Overhead, jobs: o.jobs, input: o.sha,
			})
		}
	}
	some := slices.DeleteFunc(everyPolicy(), func(name string) bool { return name == acceptAtOnce })
	for _, at := range s.CongestionAt {
		workload, net, _ := strings.Cut(at, "/")
		for _, c := range s.Congestion {
			for d := range s.CongestionDraws {
				add(fmt.Sprintf("congestion/%s/%g/%d", at, c, d), outcome{
					table: "congestion", labels: map[string]string{"workload": workload, "net": net, "congestion": shareText(c), "draw": fmt.Sprint(d)},
					workload: workload, net: net, congestion: c, policies: some, overhead: s.Overhead,
					jobs: func() ([]traces.Job, error) { return drawJobs(workload, s.Jobs, d) }, input: []int{s.Jobs, d},
				})
			}
		}
	}
	for _, at := range s.AxesAt {
		workload, net, _ := strings.Cut(at, "/")
		for d := range s.AxesDraws {
			for _, cost := range s.Overheads {
				add(fmt.Sprintf("overheads/%s/%s/%d", at, cost, d), outcome{
					table: "overheads", labels: map[string]string{"workload": workload, "net": net, "overhead": cost, "draw": fmt.Sprint(d)},
					workload: workload, net: net, policies: costly(cost), overhead: cost,
					jobs: func() ([]traces.Job, error) { return drawJobs(workload, s.Jobs, d) }, input: []int{s.Jobs, d},
				})
			}
			for _, size := range s.Clusters {
				for _, lease := range s.Leases {
					add(fmt.Sprintf("leases/%s/%s/%s/%d", at, size, lease, d), outcome{
						table: "leases", labels: map[string]string{"workload": workload, "net": net, "cluster": size, "lease": lease, "draw": fmt.Sprint(d)},
						workload: workload, net: net, size: size, lease: lease, policies: leasing(), overhead: s.Overhead,
						jobs: func() ([]traces.Job, error) { return drawJobs(workload, s.Jobs, d) }, input: []int{s.Jobs, d},
					})
				}
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
	acceptors, err := s.acceptorCells()
	return append(all, acceptors...), err
}

// outcome is a workload that policies play in this simulator, for a table.
type outcome struct {
	table         string
	labels        map[string]string
	workload, net string
	congestion    float64
	size, lease   string // "" = usual, an hour
	overhead      string
	policies      []string
	jobs          func() ([]traces.Job, error)
	input         any // on which jobs depends
}

// cell returns the cell that computes o.
func (o outcome) cell(key string) study.Cell {
	return study.Cell{
		Key: key, Input: []any{method, o.workload, o.net, o.congestion, o.size, o.lease, o.overhead, o.policies, o.input},
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			by := rules{overhead: o.overhead}
			var err error
			if o.lease != "" {
				if by.lease, err = time.ParseDuration(o.lease); err != nil {
					return nil, err
				}
			}
			spec, err := clusterOn(cmp.Or(o.size, usual), o.net, o.congestion)
			if err != nil {
				return nil, err
			}
			jobs, err := o.jobs()
			if err != nil {
				return nil, err
			}
			if o.size != "" {
				jobs = scaled(jobs, gpusOf(o.size))
			}
			var rows []study.Row
			for i, policy := range o.policies {
				got, err := playHere(ctx, jobs, spec, policy, by)
				if err != nil {
					return nil, err
				}
				rows = append(rows, got.rows(o.table, with(o.labels, "policy", policy))...)
				b.Progress(int64(i+1), int64(len(o.policies)))
			}
			return rows, nil
		},
	}
}

// with returns a copy of labels with one more.
func with(labels map[string]string, name, value string) map[string]string {
	all := maps.Clone(labels)
	all[name] = value
	return all
}
