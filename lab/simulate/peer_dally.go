package simulate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/lab/workload"
	"clustergym/peer/dally"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/traces"
)

// Peer holds what a peer's machine reports in addition to the metrics, in its own terms. Times are seconds, summed as
// the machine sums them.
type Peer struct {
	Name     string     `json:"name"`
	Net      string     `json:"net"`
	Timers   string     `json:"timers,omitempty"`
	LeaseS   float64    `json:"lease_s"`
	Block    int64      `json:"granularity"`
	History  int        `json:"history"`
	Seed     uint64     `json:"seed,omitempty"` // only gandiva, which shuffles
	Makespan float64    `json:"makespan_s"`
	MeanJCT  float64    `json:"mean_jct_s"`
	Queue    float64    `json:"mean_queue_s"`
	GPUTime  float64    `json:"gpu_time_s"`
	CompTime float64    `json:"comp_time_s"`
	CommTime float64    `json:"comm_time_s"`
	Grants   PeerGrants `json:"grants"`
	Blocks   int64      `json:"blocks"`
	Passes   int64      `json:"passes"`
}

// PeerGrants counts the gangs granted to waiting jobs by the extent of their GPUs, and those granted to running jobs.
type PeerGrants struct {
	One          int `json:"one"`
	Slot         int `json:"slot"`
	Machine      int `json:"machine"`
	Rack         int `json:"rack"`
	Cross        int `json:"cross"`
	WhileRunning int `json:"while_running"`
}

// dallyRun is a run on the machine of Dally's authors.
type dallyRun struct {
	*peerRun
	racks, perRack int
	all, jobs      []dally.Job // read, in the order of the trace, and those that fit
	factors        dally.Factors
}

// takes implements peerMachine: racks of equally many machines of eight GPUs.
func (r *dallyRun) takes(c *cluster.Cluster) error {
	wrong := fault.Mistakef("%s: got %s, want racks of equally many machines of eight GPUs for this machine, as dally:4x4",
		fault.Key("cluster"), r.spec.Name)
	nodes, each := equalNodes(c)
	if each != 8 || c.Racks() == 0 {
		return wrong
	}
	r.racks, r.perRack = c.Racks(), nodes/c.Racks()
	for k := range r.racks {
		if from, to := c.RackNodes(k); to-from != r.perRack {
			return wrong
		}
	}
	return nil
}

// peerFactors returns the communication costs of cfg's network.
func peerFactors(cfg PeerConfig) (dally.Factors, error) {
	built := map[string]dally.Factors{"one": dally.One{}, "slow": dally.Slow()}
	own, known := built[cfg.Net]
	if cfg.Factors == "" {
		if !known {
			return nil, fault.Mistakef("%s: got %s, want slow or one, or %s, the path of a table that has it%s",
				fault.Key("net"), cfg.Net, fault.Key("factors"), nearest.Meant(cfg.Net, []string{"slow", "one"}))
		}
		return own, nil
	}
	f, err := traces.OrdinaryFiles().Open(context.Background(), cfg.Factors)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Mistakef("%s %s: there is no such file", fault.Key("factors"), cfg.Factors)
	} else if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	defer f.Close() //nolint:errcheck // open for reading only
	table, nets, err := dally.ReadFactors(f, cfg.Factors, cfg.Net)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if known {
		table.Else = own
	} else if !slices.Contains(nets, cfg.Net) {
		nets = slices.Compact(slices.Sorted(slices.Values(append(nets, "slow", "one"))))
		return nil, fault.Mistakef("%s: got %s, which %s does not have, want %s", fault.Key("net"), cfg.Net, cfg.Factors,
			nearest.OneOf(cfg.Net, nets))
	}
	return table, nil
}

// load implements peerMachine. It reads Dally's own files with all their digits, and other traces as the simulator
// does.
func (r *dallyRun) load(ctx context.Context) (err error) {
	if r.factors, err = peerFactors(r.cfg.Peer); err != nil {
		return err
	}
	all, info, err := workload.LoadTraceContext(ctx, r.cfg.Trace)
	if err != nil {
		return err
	}
	r.report.Info = info
	if info.Format == "dally" && r.cfg.Trace.Skip == 0 && r.cfg.Trace.Jobs == 0 {
		path, err := workload.Located(r.cfg.Trace.File)
		if err != nil {
			return err
		}
		f, err := traces.OrdinaryFiles().Open(context.Background(), path)
		if err != nil {
			return &fault.Mistake{Err: err}
		}
		defer f.Close() //nolint:errcheck // open for reading only
		if r.all, err = dally.ReadJobs(workload.NewCtxReader(ctx, f), r.cfg.Trace.File); err != nil {
			return &fault.Mistake{Err: err}
		}
	} else if r.all, err = PeerJobs(all); err != nil {
		return err
	}
	if r.hooks.Jobs != nil && len(all) == len(r.all) {
		for i := range all {
			r.who = append(r.who, [2]string{all[i].User, all[i].VC})
		}
	}
	r.jobs, err = leaveOut(r.peerRun, fmt.Sprintf("%d GPUs", r.gpus), r.all, func(j *dally.Job) peerJob {
		return peerJob{j.Name, j.GPUs <= r.gpus, j.Iterations * j.Time}
	})
	return err
}

// PeerJobs converts the simulator's jobs to the machine's. The number of iterations and their time come from the trace,
// or from the profile's compute time; communication follows from the profile. A job without whole GPUs or without a run
// time is a mistake.
func PeerJobs(all []traces.Job) ([]dally.Job, error) {
	jobs := make([]dally.Job, 0, len(all))
	for i := range all {
		j := &all[i]
		if j.GPUMilli != 1000 || j.GPUs < 1 || j.Work <= 0 {
			return nil,
				fault.Mistakef(
					"job %s asks for %d GPUs of %d thousandths for %v, want whole GPUs and a run time above 0s for a machine that "+
						"leases GPUs", j.ID, j.GPUs, j.GPUMilli, j.Work)
		}
		d := dally.Job{ID: int64(i), Name: j.ID, Arrival: j.Submit.Seconds(), GPUs: j.GPUs, Model: j.Model}
		if id, err := strconv.ParseInt(j.ID, 10, 64); err == nil {
			d.ID = id
		}
		seconds := j.Work.Seconds() * float64(j.GPUs)
		switch {
		case j.Iterations > 0:
			d.Iterations = float64(j.Iterations)
		case j.Profile != nil && j.Profile.Compute > 0:
			d.Iterations = math.Max(1, math.Round(seconds/j.Profile.Compute.Seconds()))
		default:
			d.Iterations = math.Max(1, math.Round(seconds*1000)) // a millisecond each
		}
		d.Time = seconds / d.Iterations
		if p := j.Profile; p != nil && p.Compute > 0 {
			d.Model, d.Compute, d.Bytes = p.Name, p.Compute.Seconds(), float64(p.GradientBytes)
		}
		jobs = append(jobs, d)
	}
	return jobs, nil
}

// run implements peerMachine.
func (r *dallyRun) run(ctx context.Context, policy string) error {
	p := r.cfg.Peer
	cfg := dally.DefaultConfig()
	cfg.Racks, cfg.Machines, cfg.Policy, cfg.Variant = r.racks, r.perRack, policy, strings.TrimPrefix(p.Name, "dally-")
	cfg.RackWait, cfg.NetworkWait, _ = p.timers()
	cfg.Lease, cfg.Granularity, cfg.History, cfg.Seed = p.Lease.Seconds(), float64(p.Granularity), float64(p.History),
		int64(r.cfg.Seed)
	log := dallyLog{peerLog: r.begin(policy, len(r.jobs)), jobs: r.jobs}
	if r.table != nil {
		log.stops, log.moved = make([]int, len(r.jobs)), make([]int, len(r.jobs))
	}
	found, err := dally.Run(ctx, r.jobs, r.factors, cfg, log.observe)
	if err := r.ended(ctx, policy, log.peerLog, err); err != nil {
		return err
	}
	t := found.Totals(r.jobs)
	peer := &Peer{
		Name: p.Name, Net: p.Net, LeaseS: cfg.Lease, Block: p.Granularity, History: p.History,
		Makespan: t.Makespan, MeanJCT: t.MeanJCT, Queue: t.MeanQueue, GPUTime: t.GPUTime, CompTime: t.CompTime,
		CommTime: t.CommTime,
		Grants:   PeerGrants{t.Grants[0], t.Grants[1], t.Grants[2], t.Grants[3], t.Grants[4], t.WhileRunning},
		Blocks:   found.Blocks, Passes: found.Passes,
	}
	switch policy {
	case "dally":
		peer.Timers = p.Timers
	case "gandiva":
		peer.Seed = uint64(cfg.Seed)
	}
	m := peerMetrics(r.jobs, found, r.gpus)
	// The machine sums these in floats, and the result keeps its sums.
	m.Makespan, m.JCT.Mean = t.Makespan, t.MeanJCT
	m.Preemptions, m.Migrations = log.preempts, log.moves
	if r.table != nil {
		if err := r.writeJobs(policy, found, &log); err != nil {
			return err
		}
	}
	r.add(log.peerLog, Result{Policy: policy, Metrics: m, Peer: peer})
	return nil
}

// peerMetrics returns the metrics of the machine's jobs as if the simulator had run them. Times are rounded to
// nanoseconds, a job's work is its compute time, and its time on GPUs is that of its blocks.
func peerMetrics(jobs []dally.Job, found *dally.Report, gpus int) metrics.Summary {
	at := func(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
	list := make([]metrics.Job, len(jobs))
	for i := range jobs {
		j, f := &jobs[i], &found.Jobs[i]
		list[i] = metrics.Job{
			Submit: at(j.Arrival), First: at(f.First), Finish: at(f.End), Run: at(f.GPUTime), Work: at(f.CompTime),
			GPUTime: f.GPUTime * float64(j.GPUs), Pos: int32(i), GPUs: int32(j.GPUs), Milli: 1000,
		}
	}
	return metrics.Summarize(list, gpus, at(found.End))
}
