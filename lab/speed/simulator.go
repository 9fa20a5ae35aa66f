package speed

import (
	"context"
	"fmt"
	"time"

	"clustergym/internal/fault"
	"clustergym/lab/simulate"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/synth"
)

// simulator measures simulations of jobs in memory, including metrics.
func (b *bench) simulator(ctx context.Context) error {
	if b.cfg.Trace.File != "" {
		return b.recorded(ctx)
	}
	for _, g := range []struct {
		cluster   string
		what      string
		estimates sim.EstimateMode
		jobs      func(n int) ([]traces.Job, error)
		rows      []policyCase
	}{
		{"pool:256", "HPC jobs, load 0.6", sim.EstimateExact, jobsOf("hpc", 256, 0.6), []policyCase{
			{"fifo+strict", "", 2_000_000}, {"sjf+strict", "", 2_000_000}, {"sjf+skip", "", 0}, {"fifo+commit", "", 0},
		}},
		{"64x8", "Philly jobs, load 0.8", sim.EstimateExact, jobsOf("philly", 512, 0.8), []policyCase{
			{"fifo+strict", "best-fit", 500_000}, {"sjf+skip", "best-fit", 0}, {"srtf+skip", "best-fit", 100_000},
			{"las+skip", "best-fit", 0},
		}},
		{"pool:100", "HPC jobs like KTH-SP2's, load 0.7", sim.EstimateTrace, jobsOf("hpc", 100, 0.7), []policyCase{
			{"fifo+strict+easy", "", 100_000}, {"fifo+strict+conservative", "", 0},
		}},
		{"pool:8192", "HPC jobs like RICC's, load 0.85", sim.EstimateTrace, jobsOf("hpc", 8192, 0.85), []policyCase{
			{"fifo+strict+easy", "", 100_000}, {"sjf+strict+easy", "", 0},
		}},
	} {
		jobs, err := g.jobs(b.size(20_000))
		if err != nil {
			return err
		}
		if err := b.play(ctx, g.what, g.cluster, g.estimates, jobs, g.rows); err != nil {
			return err
		}
	}
	if err := b.placing(ctx); err != nil {
		return err
	}
	return b.queues(ctx)
}

// policyCase is a policy to measure.
type policyCase struct {
	policy    string
	placement string  // "" = first-fit
	mark      float64 // jobs per second, 0 = none
}

// recorded measures the simulation of the user's trace.
func (b *bench) recorded(ctx context.Context) error {
	b.say("reading " + b.cfg.Trace.File)
	spec, err := workload.ClusterSpec(b.cfg.Cluster)
	if err != nil {
		return err
	}
	c, err := cluster.New(spec)
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	all, _, err := workload.LoadTraceContext(ctx, b.cfg.Trace)
	if err != nil {
		return err
	}
	jobs, never := simulate.Fitting(c, all)
	if len(jobs) == 0 {
		return never.Mistake(len(all), spec.Name, c, false)
	}
	if b.cfg.Quick && len(jobs) > 10_000 {
		jobs = jobs[:10_000]
	}
	estimates := sim.EstimateTrace
	if n, _ := simulate.WithoutEstimate(jobs); n > 0 {
		estimates = sim.EstimateExact
	}
	policies := b.cfg.Policies
	if len(policies) == 0 {
		policies = []string{"fifo+strict", "fifo+skip", "sjf+strict", "sjf+skip", "fifo+strict+easy", "srtf+skip", "las+skip"}
	}
	placement := "best-fit"
	if c.Pool() {
		placement = ""
	}
	cases := make([]policyCase, len(policies))
	for i, p := range policies {
		cases[i] = policyCase{policy: p, placement: placement}
	}
	return b.play(ctx, b.cfg.Trace.File, b.cfg.Cluster, estimates, jobs, cases)
}

// play measures how fast jobs are simulated on one cluster under several policies.
func (b *bench) play(ctx context.Context, what, on string, known sim.EstimateMode, jobs []traces.Job,
	cases []policyCase) error {
	spec, err := workload.ClusterSpec(on)
	if err != nil {
		return err
	}
	for _, k := range cases {
		cfg := simulate.Config{Policy: schedulers.DefaultConfig(), Seed: 1}
		cfg.Policy.Estimates.Mode = known
		if k.placement != "" {
			cfg.Policy.Placement = k.placement
		}
		h := cfg.Heuristic(k.policy)
		if err := h.Validate(); err != nil {
			return &fault.Mistake{Err: fmt.Errorf("policy %s: %w", k.policy, err)}
		}
		sc := sim.DefaultConfig()
		sc.Seed = cfg.Seed
		h.Simulator(&sc)
		s, err := sim.New(sc, spec)
		if err != nil {
			return err
		}
		h.Know(jobs, s.View().Cluster())
		policy, err := schedulers.New(h)
		if err != nil {
			return err
		}
		row := Row{Group: "simulator", What: what, Jobs: len(jobs), Cluster: on, Policy: h.Name(), Unit: "jobs/s",
			Mark: k.mark}
		if k.placement != "" {
			row.Policy += ", " + k.placement
		}
		var stream traces.Slice
		var counted metrics.Collector
		err = b.measure(ctx, row, func(ctx context.Context) (int, error) {
			stream.Reset(jobs)
			counted.Reset()
			if err := s.Reset(&stream); err != nil {
				return 0, err
			}
			if err := sim.Run(ctx, s, policy, &counted); err != nil {
				return 0, err
			}
			return len(jobs), nil
		})
		if err != nil {
			return fmt.Errorf("policy %s: %w", h.Name(), err)
		}
	}
	return nil
}

// jobsOf returns a generator of jobs of a profile for gpus GPUs or processors at the given load: of a batch system
// (hpc), or of deep-learning workloads (philly).
func jobsOf(profile string, gpus int, load float64) func(n int) ([]traces.Job, error) {
	cfg := synth.DefaultConfig()
	if cfg.Profile = profile; profile == "hpc" {
		cfg.Procs = gpus
	} else {
		cfg.MaxGPUs = gpus
	}
	return loaded(cfg, gpus, load)
}

// loaded returns a generator of n jobs of a profile that ask for the share load of the GPUs' time until the last
// submit. It generates jobs at the profile's rate and then stretches their submits.
func loaded(cfg synth.Config, gpus int, load float64) func(n int) ([]traces.Job, error) {
	return func(n int) ([]traces.Job, error) {
		cfg.Jobs = n
		jobs, err := synth.Generate(cfg, 1)
		if err != nil {
			return nil, err
		}
		area := 0.0
		for i := range jobs {
			area += jobs[i].Work.Seconds() * float64(jobs[i].GPUs)
		}
		factor := area / (jobs[n-1].Submit - jobs[0].Submit).Seconds() / float64(gpus) / load
		for i := range jobs {
			jobs[i].Submit = time.Duration(float64(jobs[i].Submit) * factor).Truncate(time.Second)
		}
		return jobs, nil
	}
}
