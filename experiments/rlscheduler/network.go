package rlscheduler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/agents"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/env/queuerank"
	program "clustergym/env/queuerank/rlscheduler"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/lab/brought"
	"clustergym/lab/rundir"
	peer "clustergym/peer/rlscheduler"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Rows of a trained agent. It acts alone, without a search.
const (
	network = "network"       // always the best action
	drawn   = "network-drawn" // the mean of several plays that draw from its softmax, as RLScheduler's program draws once
)

// drawSeed decides the draws from the softmax.
const drawSeed = 1

// trained is an agent that was trained in RLScheduler-v1, or its older form in QueueRank-v1, on this machine.
type trained struct {
	log     string // where it plays
	found   *arena.Opened
	id      string           // of the environment of its run
	env     queuerank.Config // its settings
	on      string           // the workload of its run
	longest time.Duration    // the largest run time that it was trained on
	jobs    int              // of its training part
	// scale holds the jobs of its training part as this machine has them. Observations are scaled by their maxima,
	// whatever log is played.
	scale []traces.Job
}

// trained opens the agents of p. Faults are the user's mistakes.
func (s *settings) trained(p study.Plan) ([]*trained, error) {
	if len(p.Agents) == 0 {
		return nil, nil
	}
	logs, absent, err := s.given(p)
	if err != nil {
		return nil, err
	}
	var all []*trained
	for _, a := range p.Agents {
		var names []string
		for i := range logs {
			names = append(names, logs[i].Name)
		}
		switch {
		case slices.Contains(absent, a.Where):
			return nil, fault.Mistakef("%s %s=%s: log %s is not at hand; %s names the folder that has it", fault.Key("agent"),
				a.Where, a.Dir, a.Where, fault.Key("data"))
		case !slices.Contains(names, a.Where):
			return nil, fault.Mistakef("%s %s=%s: log %q is unknown, want %s", fault.Key("agent"), a.Where, a.Dir, a.Where,
				nearest.OneOf(a.Where, names))
		case slices.ContainsFunc(all, func(t *trained) bool { return t.log == a.Where }):
			return nil, fault.Mistakef("%s %s=%s: log %s has an agent already, want one for each log", fault.Key("agent"),
				a.Where, a.Dir, a.Where)
		}
		t, err := open(p, a, &logs[slices.Index(names, a.Where)])
		if err != nil {
			if input, ok := errors.AsType[*fault.Mistake](err); ok {
				return nil, &fault.Mistake{Err: fault.Errorf("%s %s=%s: %w", fault.Key("agent"), a.Where, a.Dir, input.Err)}
			}
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// open reads a checkpoint, and the jobs of its run for the scales of observations.
func open(p study.Plan, a study.Agent, log *logSettings) (*trained, error) {
	if _, err := os.Stat(a.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Mistakef("there is no such folder")
	}
	_, run, err := rundir.CheckpointDir(a.Dir)
	if err != nil {
		return nil, err
	}
	cfg, err := rundir.ReadConfig(run)
	if err != nil {
		return nil, err
	}
	var settings queuerank.Config
	switch s := cfg.Env.Settings.(type) {
	case *program.Config:
		settings = s.Older()
	case *queuerank.Config:
		settings = *s
	default:
		return nil, fault.Mistakef("it was trained in %s, want %s, or %s with env.peer: true",
			cfg.Env.ID, program.ID, queuerank.V1)
	}
	est := settings.Estimates
	switch {
	case !settings.Peer:
		return nil, fault.Mistakef("it was trained with env.peer: false, want true: another machine than RLScheduler's")
	case est.Mode != sim.EstimateExact && est.Mode != sim.EstimateTrace:
		return nil, fault.Mistakef("it was trained with env.estimates: %s, want exact or trace: requests are known here",
			settings.Estimates)
	case settings.Forecast.Shown(est):
		return nil, fault.Mistakef("it was trained with env.forecast: %s, want auto or off: this machine shows no forecasts",
			settings.Forecast)
	}
	named := cfg.Trace.File
	if p.Sent() {
		// The run's configuration is another machine's. Its trace can only be the log, which is among this machine's
		// workloads.
		names := map[string]string{}
		if named != "" && log.File != "" && filepath.Base(named) == filepath.Base(log.File) {
			cfg.Trace.File, names[brought.Trace] = log.File, filepath.Base(named)
		}
		if err := brought.Check(&cfg, names); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
	}
	world, err := arena.NewScenario(&cfg)
	if err != nil {
		return nil, err
	}
	if named != "" {
		world.Trace.File = named
	}
	if world.GPUs != procs {
		return nil, fault.Mistakef("it was trained on %d processors, want %d", world.GPUs, procs)
	}
	t := &trained{log: a.Where, id: cfg.Env.ID, env: settings, on: world.Trace.String()}
	for _, j := range world.Taken.Windows.Jobs(traces.Training) {
		asked := est.OfJob(&j)
		if user, err := strconv.Atoi(j.User); j.MemBytes > 0 || err == nil && user > 0 {
			return nil,
				fault.Mistakef("the jobs that it was trained on have users or memory, which the jobs of this machine have not")
		}
		t.longest = max(t.longest, asked)
		t.scale = append(t.scale,
			traces.Job{ID: j.ID, Submit: j.Submit, Work: asked, Estimate: asked, GPUs: j.GPUs, GPUMilli: 1000})
	}
	t.jobs = len(t.scale)
	e, err := t.open(modes[0], nil)
	if err != nil {
		return nil, err
	}
	if t.found, err = arena.OpenCheckpoint(a.Dir, e.Spec()); err != nil {
		return nil, err
	}
	return t, world.Same(t.found.Meta.Extra, run)
}

// identity is what the agent's play depends on.
func (t *trained) identity() map[string]any {
	sum := sha256.Sum256(t.found.Weights)
	// The text is older than the part of the settings that several environments have in common.
	settings := strings.NewReplacer("{Common:{", "{", " Mode:0} Filter:", " Filter:").Replace(fmt.Sprintf("%+v", t.env))
	return map[string]any{
		"weights": hex.EncodeToString(sum[:]), "longest": t.longest, "env": settings, "agent": t.found.Cfg.Agent,
	}
}

// open returns the environment of the agent's run over windows, at this machine: requests as the rules know them,
// back-filling as mode says, and the scales of the training.
func (t *trained) open(mode string, windows windowsOf) (*queuerank.Env, error) {
	c := t.env
	c.Window, c.Load, c.Filter, c.MaxGPUs, c.Backfill = length, 0, false, procs, "none"
	c.Metric, c.Reward, c.Estimates = "bsld", "minus", sim.Estimates{Mode: sim.EstimateTrace}
	if mode == "yes" {
		c.Backfill = "easy"
	}
	return program.New(t.id, program.FromOlder(c),
		cluster.Spec{Name: "swf-256", Pool: procs}, windows, t.scale, traces.Test)
}

// windowsOf are windows of jobs for QueueRank-v1.
type windowsOf [][]traces.Job

// At implements sched.Windows.
func (w windowsOf) At(_ traces.Part, _ uint64, i int) (traces.Window, error) {
	return traces.Window{Jobs: w[i], Counted: len(w[i])}, nil
}

// simulated returns jobs of the machine as jobs of the simulator.
func simulated(jobs []peer.Job) []traces.Job {
	all := make([]traces.Job, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		all[i] = traces.Job{
			ID: j.ID, Submit: time.Duration(j.Submit) * time.Second, Work: time.Duration(j.Run) * time.Second,
			Estimate: time.Duration(j.Request) * time.Second, GPUs: int(j.Procs), GPUMilli: 1000,
		}
	}
	return all
}

// play returns the bounded slowdown in each window with the best action, and by draw and window with actions drawn from
// the softmax. An agent that has no softmax has no draws.
func (t *trained) play(ctx context.Context, workers, draws int, mode string,
	windows []window) (best []float64, drawn [][]float64, err error) {
	jobs := make(windowsOf, len(windows))
	for i := range windows {
		jobs[i] = simulated(windows[i].jobs)
	}
	if t.found.Cfg.Agent != "ppo" {
		draws = 0
	}
	plays := make([][]float64, 1+draws) // the best actions first
	for i := range plays {
		plays[i] = make([]float64, len(windows))
	}
	type players struct{ best, draw *agents.Player }
	local := par.Local[*players]{Make: func() (*players, error) {
		e, err := t.open(mode, jobs)
		if err != nil {
			return nil, err
		}
		p, err := t.found.In(e)
		if err != nil {
			return nil, err
		}
		h := &players{best: agents.NewPlayer(e, p)}
		if p, ok := p.(*ppo.Policy); ok {
			h.draw = agents.NewPlayer(e, p.Sampling())
		}
		return h, nil
	}}
	err = local.For(ctx, workers, len(windows)*len(plays), func(h *players, game int) error {
		k, i := game/len(windows), game%len(windows)
		player, src := h.best, (*rand.Rand)(nil)
		if k > 0 {
			player, src = h.draw, rng.Stream(rng.At(drawSeed, uint64(k), uint64(i)), "rlscheduler/draw")
		}
		if _, _, err := player.Play(ctx, env.Episode{Window: i}, src); err != nil {
			return fmt.Errorf("window %s: %w", windows[i].name, err)
		}
		ts := player.TimeStep()
		if ts.Kind != env.Terminated {
			return fmt.Errorf("window %s: the clock has run out", windows[i].name)
		}
		plays[k][i] = ts.Info[queuerank.InfoBSLD]
		return nil
	})
	return plays[0], plays[1:], err
}

// playNetwork returns what plays a trained agent.
func (f *field) playNetwork(t *trained) player {
	return func(ctx context.Context, b *study.Bench, set string, windows []window, _ []study.Row) ([]study.Row, error) {
		best, draws, err := t.play(ctx, b.Workers, f.Draws, f.mode, windows)
		return f.networkRows(set, windows, best, draws), err
	}
}

// networkRows returns the rows of the plays of an agent, by its best actions and by draw.
func (f *field) networkRows(set string, windows []window, best []float64, draws [][]float64) (rows []study.Row) {
	means := make([]float64, len(draws)) // by draw, over the windows
	for i := range windows {
		w := &windows[i]
		rows = append(rows, f.row(set, network, w, "bsld", best[i]))
		if len(draws) == 0 {
			continue
		}
		sum := 0.0
		for k := range draws {
			sum += draws[k][i]
			means[k] += draws[k][i] / float64(len(windows))
		}
		rows = append(rows, f.row(set, drawn, w, "bsld", sum/float64(len(draws))))
	}
	if len(draws) > 1 {
		rows = append(rows, f.row(set, drawn, &window{name: "all"}, "spread", deviation(means)))
	}
	return rows
}

// deviation returns the standard deviation, with n − 1.
func deviation(x []float64) float64 {
	mean, sum := statistic.Mean(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(x)-1))
}

// said describes the agent for the notes of the report.
func (t *trained) said(draws int) string {
	return fmt.Sprintf(
		"network and network-drawn on %s: %s, trained on %d jobs of %s. The second is the mean of %d plays that draw from "+
			"its softmax. Its requests are divided by %d s, the longest run time of those jobs, in every log.",
		t.log, t.found.Name, t.jobs, t.on, draws, int64(t.longest/time.Second))
}
