package dally

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/experiments/study"
	"clustergym/traces"
)

// cells returns the study's units of work: schedulers on generated and recorded workloads, congestion, what stops cost,
// leases and clusters, the authors' machine, and the acceptors of offers.
func (s *settings) cells(p study.Plan) ([]study.Cell, error) {
	files, err := findRecorded(p.Data)
	if err != nil {
		return nil, err
	}
	acceptors, err := s.acceptorCells()
	return slices.Concat(s.schedulerCells(files), s.congestionCells(), s.axesCells(), s.machineCells(files),
		acceptors), err
}

// drawn returns the outcome of policies on one draw of a generated workload.
func (s *settings) drawn(table, workload, net string, draw int, policies []string) outcome {
	return outcome{
		table: table, labels: map[string]string{"workload": workload, "net": net, "draw": fmt.Sprint(draw)},
		workload: workload, net: net, policies: policies, overhead: s.Overhead,
		jobs: func() ([]traces.Job, error) { return drawJobs(workload, s.Jobs, draw) }, input: []int{s.Jobs, draw},
	}
}

// schedulerCells returns the cells of the table schedulers, on generated and on recorded workloads.
func (s *settings) schedulerCells(files []recorded) (all []study.Cell) {
	for _, workload := range s.Workloads {
		for _, net := range s.Nets {
			for d := range s.Draws {
				all = append(all,
					s.drawn("schedulers", workload, net, d, everyPolicy()).cell(fmt.Sprintf("schedulers/%s/%s/%d", workload, net, d)))
			}
		}
	}
	for _, f := range files {
		for _, net := range s.Nets {
			o := s.drawn("schedulers", f.name, net, 0, everyPolicy())
			o.jobs, o.input = f.jobs, f.sha
			all = append(all, o.cell(fmt.Sprintf("schedulers/%s/%s", f.name, net)))
		}
	}
	return all
}

// congestionCells returns the cells of the table congestion.
func (s *settings) congestionCells() (all []study.Cell) {
	some := slices.DeleteFunc(everyPolicy(), func(name string) bool { return name == acceptAtOnce })
	for _, at := range s.CongestionAt {
		workload, net, _ := strings.Cut(at, "/")
		for _, c := range s.Congestion {
			for d := range s.CongestionDraws {
				o := s.drawn("congestion", workload, net, d, some)
				o.congestion, o.labels["congestion"] = c, shareText(c)
				all = append(all, o.cell(fmt.Sprintf("congestion/%s/%g/%d", at, c, d)))
			}
		}
	}
	return all
}

// axesCells returns the cells of the tables overheads and leases.
func (s *settings) axesCells() (all []study.Cell) {
	for _, at := range s.AxesAt {
		workload, net, _ := strings.Cut(at, "/")
		for d := range s.AxesDraws {
			for _, cost := range s.Overheads {
				o := s.drawn("overheads", workload, net, d, costly(cost))
				o.overhead, o.labels["overhead"] = cost, cost
				all = append(all, o.cell(fmt.Sprintf("overheads/%s/%s/%d", at, cost, d)))
			}
			for _, size := range s.Clusters {
				for _, lease := range s.Leases {
					o := s.drawn("leases", workload, net, d, leasing())
					o.size, o.lease, o.labels["cluster"], o.labels["lease"] = size, lease, size, lease
					all = append(all, o.cell(fmt.Sprintf("leases/%s/%s/%s/%d", at, size, lease, d)))
				}
			}
		}
	}
	return all
}

// machineCells returns the cells of the table machines, on generated workloads and those that the authors recorded.
func (s *settings) machineCells(files []recorded) (all []study.Cell) {
	for _, workload := range []string{"dally-batch", "dally-multi"} {
		for d := range s.PeerDraws {
			all = append(all, machinesCell(fmt.Sprintf("machines/%s/%d", workload, d), workload, fmt.Sprint(d),
				func() ([]traces.Job, error) { return drawJobs(workload, s.PeerJobs, d) }, nil, []int{s.PeerJobs, d}))
		}
	}
	for _, f := range files {
		if f.exact != nil {
			all = append(all, machinesCell("machines/"+f.name, f.name, "0", f.jobs, f.exact, f.sha))
		}
	}
	return all
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
				rows = append(rows, got.rows(o.table, study.With(o.labels, "policy", policy))...)
				b.Progress(int64(i+1), int64(len(o.policies)))
			}
			return rows, nil
		},
	}
}
