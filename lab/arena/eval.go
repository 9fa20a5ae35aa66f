package arena

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/report"
	"clustergym/lab/stream"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/csv"
)

// EvalOptions are the arguments of an evaluation that its configuration does not contain.
type EvalOptions struct {
	Checkpoints []string     // checkpoints or run directories; each is played as its own run's configuration says
	Models      []envs.Model // ONNX models
	Workers     int
	Scenario    *Scenario // nil = made from the configuration
	External    *External
	Game        func(done, all int)
	// Queue starts a coordinator that keeps its files in dir, so that other machines play games too; nil = none do.
	// External policies, and those whose choices depend on the clock, play here.
	Queue func(ctx context.Context, dir string) (*workqueue.Coordinator, error)
}

// Comparison is the result of an evaluation.
type Comparison = report.Comparison

// Compare evaluates the checkpoints of opt and the policies of cfg in any environment: on windows of a workload on the
// simulator, else on episodes.
func Compare(ctx context.Context, cfg config.Config, opt EvalOptions) (Comparison, error) {
	if err := ready(&cfg); err != nil {
		return nil, err
	}
	a, err := New(&cfg, opt.Scenario)
	if err != nil {
		return nil, err
	}
	return a.Judge(ctx, cfg, opt)
}

// ready checks cfg and takes its kernels into use.
func ready(cfg *config.Config) error {
	if err := cfg.Validate(); err != nil {
		return &fault.Mistake{Err: err}
	}
	return config.UseKernels(cfg.Kernels)
}

// Evaluate is Compare on windows of a workload on the simulator, with the kernels that are in use.
func Evaluate(ctx context.Context, cfg config.Config, opt EvalOptions) (r *report.Report, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if !cfg.Simulated() {
		return nil, fault.Mistakef("env.id: %s has no windows of a workload to evaluate on", cfg.Env.ID)
	}
	if opt.Scenario == nil {
		if opt.Scenario, err = NewScenario(&cfg); err != nil {
			return nil, err
		}
	}
	return opt.Scenario.evaluate(ctx, &cfg, &opt)
}

// Judge implements Arena.
func (w *Scenario) Judge(ctx context.Context, cfg config.Config, opt EvalOptions) (Comparison, error) {
	if cfg.Streamed() {
		return w.evaluateStreams(ctx, &cfg, &opt)
	}
	r, err := w.evaluate(ctx, &cfg, &opt)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// evaluate compares the checkpoints of opt and the policies of cfg on the test windows.
func (w *Scenario) evaluate(ctx context.Context, cfg *config.Config, opt *EvalOptions) (out *report.Report, err error) {
	r, err := w.testing(ctx, cfg, opt)
	if err != nil {
		return nil, err
	}
	done, err := share(ctx, cfg, opt, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = done(err) }()
	r.entire = cfg.Eval.Whole
	if out, err = r.compare(ctx, opt); err != nil {
		return nil, err
	}
	if l := w.Taken.Left; l.Jobs() > 0 {
		out.LeftOut = &l
	}
	return out, nil
}

// evaluateStreams compares the checkpoints of opt and the policies of cfg on streams.
func (w *Scenario) evaluateStreams(ctx context.Context, cfg *config.Config,
	opt *EvalOptions) (out *report.StreamReport, err error) {
	r, err := w.testing(ctx, cfg, opt)
	if err != nil {
		return nil, err
	}
	done, err := share(ctx, cfg, opt, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = done(err) }()
	if out, err = r.compareStreams(ctx, opt); err != nil {
		return nil, err
	}
	if l := w.Taken.Left; l.Jobs() > 0 {
		out.LeftOut = &l
	}
	return out, nil
}

// Scored is what one policy reaches on the test windows, streams or episodes of a configuration.
type Scored struct {
	Name, Kind string
	Trained    sim.Estimates // the estimates with which a checkpoint was trained
	Nothing    bool          // it does not ask for run times
	Knows      bool          // it knows the windows beforehand, or what no agent sees
	Values     [][]float64   // of the environment's metric, [play][unit]: one play, or eval.seeds of a policy that draws
}

// Scores plays the checkpoints and external policies of opt and the policies of cfg on the test windows, streams or
// episodes of cfg, as Compare does, and returns the metric of each game in place of statistics: units are windows,
// episodes or draws of the generator. Units of the one stream of a recorded workload are blocks of it, as long as those
// of Compare or longer: the sum over the jobs of a block, over the mean number of jobs of a block, so that the mean
// over blocks is that over jobs. A single value would hide that the stream has parts, and callers need units that are
// hardly dependent, to pair policies and to see how sure a mean is. A policy without a value is a *fault.Mistake: it is
// external and did not finish, or the metric does not apply to it.
func Scores(ctx context.Context, cfg config.Config, opt EvalOptions) ([]Scored, error) {
	err := ready(&cfg)
	if err != nil {
		return nil, err
	}
	if opt.Scenario == nil {
		if opt.Scenario, err = NewScenarioContext(ctx, &cfg); err != nil {
			return nil, err
		}
	}
	if opt.Scenario.About.Metric.Of == nil {
		return nil, fault.Mistakef("env.id: %s counts returns and has no metric; use a scheduling environment", cfg.Env.ID)
	}
	r, err := opt.Scenario.testing(ctx, &cfg, &opt)
	if err != nil {
		return nil, err
	}
	r.tick = counted(r.counts(), opt.Game)
	played, _, err := r.beside(ctx, opt.External)
	if err != nil {
		return nil, err
	}
	var all []Scored
	for i := range r.policies {
		p := &r.policies[i]
		if p.missing != "" {
			return nil, fault.Mistakef("policy %s %s", p.name, p.missing)
		}
		s := Scored{Name: p.name, Kind: p.kind, Trained: p.trained, Nothing: p.nothing, Knows: p.knows,
			Values: r.values(played[i])}
		for _, row := range s.Values {
			for k, v := range row {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					return nil, fault.Mistakef("%s: %s has no %s on %s %d: the metric does not apply to it", cfg.Env.ID, s.Name,
						opt.Scenario.About.Metric.Key, r.unit(), k)
				}
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// TestSHA returns a hash of everything that decides the episodes of the test part of cfg, whose scenario w is:
// settings, cluster, jobs, the number of windows or draws and their seed. The trace's name, and what training alone
// uses, are not in it. Of draws of a generator the jobs of the first one are in it.
func (w *Scenario) TestSHA(cfg *config.Config) (string, error) {
	if !w.About.Scheduling() {
		return "", errors.New("arena: a problem has no test part")
	}
	n := cfg.Eval.Episodes
	if w.About.Simulated() && !cfg.Streamed() {
		var err error
		if n, err = w.count(traces.Test, cfg.Eval.Windows); err != nil {
			return "", err
		}
	}
	sha, err := w.sha(cfg, traces.Test, n)
	if err != nil || !cfg.Streamed() || !w.Generated() {
		return sha, err
	}
	return w.drawSHA(cfg, sha)
}

// drawSHA returns a hash of text and of the first test draw of cfg.
func (w *Scenario) drawSHA(cfg *config.Config, text string) (string, error) {
	s := stream.Generated(cfg.Eval.Streams.Filled(), w.Draw, w.Kept(), cfg.Eval.Seed, stream.Test)
	win, err := s.At(context.Background(), 0)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, text)
	if _, err := csv.Write(h, &traces.Slice{Jobs: win.Jobs}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
