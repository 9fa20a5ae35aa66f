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

	"clustergym/env/cluster"
	"clustergym/env/metrics"
	"clustergym/env/peer/dally"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/traces"
)

// PeerConfig is a peer's own machine, to run in place of the simulator. Name "" = the simulator.
type PeerConfig struct {
	Name string `yaml:"name"` // one of PeerNames
	// Net is what communication costs: slow (rings of 600 GB/s in a machine, 25 in a rack, 10 between racks), one
	// (nothing), or a network of the table Factors.
	Net string `yaml:"net"`
	// Factors is the path of a table of factors by network, model and shape; "" = none.
	Factors string `yaml:"factors"`
	// Timers are how long Dally's jobs decline a rack, and the network, in leases, as "5/10"; "auto" tunes both.
	Timers      string        `yaml:"timers"`
	Lease       time.Duration `yaml:"lease"`
	Granularity int64         `yaml:"granularity"` // iterations of a block, for each GPU
	History     int           `yaml:"history"`     // leases that the tuner looks back
}

// DefaultPeerConfig is the simulator; its other settings are those of Dally's authors' machine.
func DefaultPeerConfig() PeerConfig {
	return PeerConfig{Net: "slow", Timers: "auto", Lease: time.Hour, Granularity: 10000, History: 24}
}

// PeerNames are the machines that are rebuilt.
func PeerNames() []string { return []string{"dally-waiting-only", "dally-published"} }

// PeerPolicies are their schedulers.
func PeerPolicies() []string { return dally.Policies() }

// Validate reports every fault.
func (c *PeerConfig) Validate() error {
	var l fault.List
	l.Add(c.Name == "" || slices.Contains(PeerNames(), c.Name), "name", c.Name, "one of "+strings.Join(PeerNames(), ", "))
	l.Add(c.Net != "", "net", c.Net, "slow, one, or a network of the table of factors")
	_, _, err := c.timers()
	l.Add(err == nil, "timers", c.Timers, "auto, or two numbers of leases, the rack's and the network's, as 5/10")
	l.Add(c.Lease >= time.Second, "lease", c.Lease, "a time of 1s or more")
	l.Add(c.Granularity >= 1 && c.Granularity <= 1e12, "granularity", c.Granularity, "iterations, 1 or more")
	l.Add(c.History >= 0 && c.History <= 1e6, "history", c.History, "a number of leases, 0 or more")
	return l.Err()
}

func (c *PeerConfig) timers() (rack, network float64, err error) {
	if c.Timers == "auto" {
		return dally.Auto, dally.Auto, nil
	}
	a, b, ok := strings.Cut(c.Timers, "/")
	rack, e := strconv.ParseFloat(a, 64)
	network, f := strconv.ParseFloat(b, 64)
	if !ok || e != nil || f != nil || !(rack >= 0) || !(network >= 0) || rack > 1e9 || network > 1e9 {
		return 0, 0, errors.New("no timers")
	}
	return rack, network, nil
}

// validatePeer checks what a peer's machine asks of the rest of the configuration.
func (c *Config) validatePeer(l *fault.List) {
	l.Join("peer", c.Peer.Validate())
	if !slices.Contains(PeerNames(), c.Peer.Name) {
		return
	}
	for i, p := range c.Policies {
		l.Add(slices.Contains(PeerPolicies(), p), fmt.Sprintf("policies[%d]", i), p, "one of "+strings.Join(PeerPolicies(), ", ")+", which the machine "+c.Peer.Name+" knows")
	}
	l.Add(c.Horizon == 0, "horizon", c.Horizon, "0s: the machine "+c.Peer.Name+" runs until all jobs have ended")
	l.Add(c.Warmup == 0, "warmup", c.Warmup, "0: the machine "+c.Peer.Name+" counts all jobs")
	l.Add(c.Tail == 0, "tail", c.Tail, "0: the machine "+c.Peer.Name+" counts all jobs")
	l.Add(c.Interference == "", "interference", c.Interference, "nothing: the machine "+c.Peer.Name+" knows none")
}

// SimPeer is what a peer's machine tells beside the metrics, in its own terms. Times are seconds, as it sums them up.
type Peer struct {
	Name     string     `json:"name"`
	Net      string     `json:"net"`
	Timers   string     `json:"timers,omitempty"`
	LeaseS   float64    `json:"lease_s"`
	Block    int64      `json:"granularity"`
	History  int        `json:"history"`
	Seed     uint64     `json:"seed,omitempty"` // of gandiva's shuffles
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

// SimPeerGrants count the gangs given to waiting jobs by where they lay, and those given to running ones.
type PeerGrants struct {
	One          int `json:"one"`
	Slot         int `json:"slot"`
	Machine      int `json:"machine"`
	Rack         int `json:"rack"`
	Cross        int `json:"cross"`
	WhileRunning int `json:"while_running"`
}

// peerRun is a workload on a peer's machine under way.
type peerRun struct {
	cfg            *Config
	hooks          Hooks
	spec           cluster.Spec
	racks, perRack int
	jobs           []dally.Job
	factors        dally.Factors
	report         *Report
}

// simulatePeer is Simulate on the machine of Dally's authors. cfg is valid.
func simulatePeer(ctx context.Context, cfg Config, hooks Hooks) (*Report, error) {
	r := &peerRun{cfg: &cfg, hooks: hooks, report: &Report{}}
	var err error
	if r.spec, err = workload.ClusterSpec(cfg.Cluster); err != nil {
		return nil, err
	}
	if r.racks, r.perRack, err = racksOfEight(r.spec); err != nil {
		return nil, err
	}
	if r.factors, err = peerFactors(cfg.Peer); err != nil {
		return nil, err
	}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	for _, p := range cfg.Policies {
		if err := r.run(ctx, p); err != nil {
			return nil, err
		}
	}
	return r.report, nil
}

// racksOfEight takes a cluster of equal racks of machines of eight GPUs apart.
func racksOfEight(spec cluster.Spec) (racks, perRack int, err error) {
	c, err := cluster.New(spec)
	if err != nil {
		return 0, 0, &workload.InputError{Err: err}
	}
	wrong := workload.Mistake("--cluster: got %s, want racks of equally many machines of eight GPUs for this machine, as dally:4x4", spec.Name)
	if c.Pool() || c.Racks() == 0 {
		return 0, 0, wrong
	}
	for k := range c.Racks() {
		from, to := c.RackNodes(k)
		if k == 0 {
			perRack = to - from
		}
		if to-from != perRack {
			return 0, 0, wrong
		}
		for n := from; n < to; n++ {
			if a, b := c.NodeGPUs(n); b-a != 8 {
				return 0, 0, wrong
			}
		}
	}
	return c.Racks(), perRack, nil
}

// peerFactors finds what a network costs.
func peerFactors(cfg PeerConfig) (dally.Factors, error) {
	built := map[string]dally.Factors{"one": dally.One{}, "slow": dally.Slow()}
	own, known := built[cfg.Net]
	if cfg.Factors == "" {
		if !known {
			return nil, workload.Mistake("--net: got %s, want slow or one, or --factors, the path of a table that has it", cfg.Net)
		}
		return own, nil
	}
	f, err := traces.OpenFile(cfg.Factors)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, workload.Mistake("--factors %s: there is no such file", cfg.Factors)
	} else if err != nil {
		return nil, &workload.InputError{Err: err}
	}
	defer f.Close() //nolint:errcheck // only read
	table, nets, err := dally.ReadFactors(f, cfg.Factors, cfg.Net)
	if err != nil {
		return nil, &workload.InputError{Err: err}
	}
	if known {
		table.Else = own
	} else if !slices.Contains(nets, cfg.Net) {
		return nil, workload.Mistake("--net: got %s, which %s does not have, want one of %s", cfg.Net, cfg.Factors, strings.Join(slices.Compact(slices.Sorted(slices.Values(append(nets, "slow", "one")))), ", "))
	}
	return table, nil
}

// load reads the workload: of Dally's own files every digit, of others what the simulator would have.
func (r *peerRun) load(ctx context.Context) error {
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
		f, err := traces.OpenFile(path)
		if err != nil {
			return &workload.InputError{Err: err}
		}
		defer f.Close() //nolint:errcheck // only read
		if r.jobs, err = dally.ReadJobs(workload.NewCtxReader(ctx, f), r.cfg.Trace.File); err != nil {
			return &workload.InputError{Err: err}
		}
	} else if r.jobs, err = PeerJobs(all); err != nil {
		return err
	}
	return r.refuse()
}

// peerJobs makes that machine's jobs of the simulator's. Iterations and their time are the trace's, or follow from
// the profile's compute time; communication is reckoned with the profile.
func PeerJobs(all []traces.Job) ([]dally.Job, error) {
	jobs := make([]dally.Job, 0, len(all))
	for i := range all {
		j := &all[i]
		if j.GPUMilli != 1000 || j.GPUs < 1 || j.Work <= 0 {
			return nil, workload.Mistake("job %s asks for %d GPUs of %d thousandths for %v, want whole GPUs and a run time above 0s for a machine that leases GPUs", j.ID, j.GPUs, j.GPUMilli, j.Work)
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

// refuse takes out what the cluster can never hold.
func (r *peerRun) refuse() error {
	all := r.racks * r.perRack * 8
	var never []string
	kept := make([]dally.Job, 0, len(r.jobs))
	for _, j := range r.jobs {
		if j.GPUs > all {
			never = append(never, j.Name)
			continue
		}
		kept = append(kept, j)
	}
	r.jobs = kept
	if len(never) == 0 {
		return nil
	}
	what := fmt.Sprintf("%d of %s", len(never), workload.Plural(len(never)+len(kept), "job", "jobs"))
	if r.cfg.FailRefused || len(kept) == 0 {
		return workload.Mistake("%s can never fit cluster %s (%d GPUs): %s; want a larger cluster", what, r.spec.Name, all, listIDs(never[:min(namedJobs, len(never))], len(never)))
	}
	r.report.note("%s refused, because cluster %s can never hold them: %s", what, r.spec.Name, listIDs(never[:min(namedJobs, len(never))], len(never)))
	r.report.refused = never
	return nil
}

// run is one policy.
func (r *peerRun) run(ctx context.Context, policy string) error {
	p := r.cfg.Peer
	cfg := dally.DefaultConfig()
	cfg.Racks, cfg.Machines, cfg.Policy, cfg.Variant = r.racks, r.perRack, policy, strings.TrimPrefix(p.Name, "dally-")
	cfg.RackWait, cfg.NetworkWait, _ = p.timers()
	cfg.Lease, cfg.Granularity, cfg.History, cfg.Seed = p.Lease.Seconds(), float64(p.Granularity), float64(p.History), int64(r.cfg.Seed)
	log := peerLog{jobs: r.jobs}
	if r.hooks.Events != nil {
		log.w = newEventLog(r.hooks.Events)
	}
	var begin time.Time
	if r.hooks.Now != nil {
		begin = r.hooks.Now()
	}
	found, err := dally.Run(ctx, r.jobs, r.factors, cfg, log.observe)
	if err == nil {
		err = log.err
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &workload.InputError{Err: fmt.Errorf("policy %s on the machine %s: %w", policy, p.Name, err)}
	}
	t := found.Totals(r.jobs)
	peer := &Peer{
		Name: p.Name, Net: p.Net, LeaseS: cfg.Lease, Block: p.Granularity, History: p.History,
		Makespan: t.Makespan, MeanJCT: t.MeanJCT, Queue: t.MeanQueue, GPUTime: t.GPUTime, CompTime: t.CompTime, CommTime: t.CommTime,
		Grants: PeerGrants{t.Grants[0], t.Grants[1], t.Grants[2], t.Grants[3], t.Grants[4], t.WhileRunning},
		Blocks: found.Blocks, Passes: found.Passes,
	}
	switch policy {
	case "dally":
		peer.Timers = p.Timers
	case "gandiva":
		peer.Seed = uint64(cfg.Seed)
	}
	run := Result{
		Policy: policy, Placement: "own", Backfill: "none", Estimates: "exact",
		Trace:   Trace{File: r.report.Info.File, Format: r.report.Info.Format, Jobs: len(r.jobs) + len(r.report.refused), Refused: len(r.report.refused)},
		Cluster: Cluster{Name: r.spec.Name, Nodes: r.racks * r.perRack, GPUs: r.racks * r.perRack * 8},
		Metrics: peerMetrics(r.jobs, found, r.racks*r.perRack*8), Events: log.n, Peer: peer,
	}
	run.Trace.RefusedIDs = r.report.refused[:min(namedJobs, len(r.report.refused))]
	// What is summed up in floats there is given as there.
	run.Metrics.Makespan, run.Metrics.JCT.Mean = t.Makespan, t.MeanJCT
	run.Metrics.Preemptions, run.Metrics.Migrations = log.preempts, log.moves
	if r.hooks.Now != nil {
		run.WallS = r.hooks.Now().Sub(begin).Seconds()
	}
	if log.w != nil {
		if err := log.w.flush(); err != nil {
			return err
		}
	}
	if r.hooks.Jobs != nil {
		if err := writePeerJobs(r.hooks.Jobs, r.jobs, found); err != nil {
			return err
		}
	}
	r.report.Runs = append(r.report.Runs, run)
	return nil
}

// peerMetrics counts that machine's jobs as the simulator's are counted: times to the nearest nanosecond, a job's
// work its compute time, its time on GPUs that of its blocks.
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
