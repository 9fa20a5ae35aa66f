package lwf

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"clustergym/experiments/study"
	"clustergym/internal/statistic"
	"clustergym/lab/workload"
	peer "clustergym/peer/lwf"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// fluid is simulator/sim with comm: contention in the table of machines.
const fluid = "env/sim, own"

// paperSpan is the label of workloads of the paper's scale.
const paperSpan = "1200, ×100"

// machine is a machine of the authors in that table.
type machine struct{ rule, gpus string }

func (m machine) String() string { return m.rule + ", " + m.gpus }

// beside returns the machines that the fluid one is compared with. The first counts transfers as the fluid one counts
// jobs: whoever is ready sends.
func beside() []machine {
	return []machine{{unlimited, own}, {srsf2, own}, {srsf1, own}, {ada, own}, {srsf1, shared}, {ada, shared}}
}

// fluidPlaces are the names in simulator/sim of that table's placements. First fit is list scheduling there: with own
// GPUs the loads of all free GPUs are 0, so the least loaded ones are the first, as the authors' first fit takes them.
// simulator/sim's own first fit looks for a node that holds the whole job.
var fluidPlaces = map[string]string{lwf1: "lwf-1", "LWF-4": "lwf-4", firstFit: "lwf-32"}

// placesOfFluid returns that table's placements.
func placesOfFluid() []string { return []string{lwf1, "LWF-4", firstFit} }

// playFluid plays a workload in simulator/sim and on the authors' machine.
func playFluid(ctx context.Context, scale peer.Scale, span string, draw int) ([]study.Row, error) {
	jobs := peer.Generate(scale, uint64(draw))
	var rows []study.Row
	p := player{}
	for _, placement := range placesOfFluid() {
		labels := func(machine string) []string {
			return []string{"span", span, "placement", placement, "machine", machine, "draw", fmt.Sprint(draw)}
		}
		here, err := playHere(ctx, jobs, fluidPlaces[placement])
		if err != nil {
			return nil, err
		}
		var first []float64 // of the first machine
		for _, m := range beside() {
			r, err := p.play(ctx, jobs, m.gpus, placement, m.rule, 0)
			if err != nil {
				return nil, err
			}
			there := make([]float64, len(jobs))
			for i := range jobs {
				there[i] = float64(r.Jobs[i].Finish-jobs[i].Arrival) / 1000
			}
			rows = append(rows, study.NewRow("fluid", "jct_s", statistic.Mean(there), labels(m.String())...),
				study.NewRow("fluid", "apart", apart(here, there), labels(m.String())...))
			if first == nil {
				first = there
				continue
			}
			rows = append(rows, study.NewRow("fluid", "from_first", apart(there, first), labels(m.String())...))
		}
		rows = append(rows, study.NewRow("fluid", "jct_s", statistic.Mean(here), labels(fluid)...),
			study.NewRow("fluid", "from_first", apart(here, first), labels(fluid)...))
	}
	return rows, nil
}

// apart returns the mean difference of a from b, job by job and without its sign, as a share of b. No b is 0.
func apart(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += math.Abs(a[i]-b[i]) / b[i]
	}
	return sum / float64(len(a))
}

// playHere returns the completion times in seconds of jobs in simulator/sim: each GPU has one job at a time, the
// waiting job of the least work × GPUs is next and those behind it may go first if it does not fit, and gangs on
// several nodes share links all the time.
func playHere(ctx context.Context, jobs []peer.Job, placement string) ([]float64, error) {
	spec, err := workload.ClusterSpec("lwf-16x4")
	if err != nil {
		return nil, err
	}
	h := schedulers.DefaultConfig()
	h.Order, h.Admission, h.Placement = "area", "skip", placement
	sch, err := schedulers.New(h)
	if err != nil {
		return nil, err
	}
	c := sim.DefaultConfig()
	c.Comm = "contention"
	s, err := sim.New(c, spec)
	if err != nil {
		return nil, err
	}
	all, at := simulated(jobs, c.Contention)
	if err := s.Reset(&traces.Slice{Jobs: all}); err != nil {
		return nil, err
	}
	var m metrics.Collector
	if err := sim.Run(ctx, s, sch, &m); err != nil {
		return nil, err
	}
	if m.Len() != len(jobs) {
		return nil, fmt.Errorf("%d of %d jobs finished", m.Len(), len(jobs))
	}
	jct := make([]float64, len(jobs))
	for j := range m.Jobs() {
		jct[at[j.Pos]] = (j.Finish - j.Submit).Seconds()
	}
	return jct, nil
}

// simulated converts jobs, in order of arrival; at has their indices. The work of a job that a node can hold is its
// compute time. That of a larger one includes its transfers over links that nobody else uses. net.B is the time that a
// MB takes there.
func simulated(jobs []peer.Job, net sim.Contention) (all []traces.Job, at []int) {
	for i := range jobs {
		at = append(at, i)
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(jobs[a].Arrival, jobs[b].Arrival) })
	for _, i := range at {
		j := &jobs[i]
		compute := time.Duration(j.Forward+j.Backward) * time.Millisecond
		each := compute
		if j.Workers > peer.DefaultConfig().GPUs {
			each += time.Duration(j.Size * float64(net.B))
		}
		all = append(all, traces.Job{
			ID: j.Name, Model: j.Model, Submit: time.Duration(j.Arrival) * time.Millisecond,
			Work: time.Duration(j.Iterations) * each,
			GPUs: j.Workers, GPUMilli: 1000, Iterations: j.Iterations,
			Profile: &traces.Profile{Name: j.Model, GradientBytes: int64(math.Round(j.Size * 1e6)), Compute: compute},
		})
	}
	return all, at
}
