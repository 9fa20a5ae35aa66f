package ddppo

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"clustergym/agents"
	"clustergym/agents/ppo"
	"clustergym/agents/train"
	"clustergym/env"
	"clustergym/env/queuerank"
	"clustergym/env/vec"
	"clustergym/experiments/study"
	"clustergym/nets"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// weightsFile is where a training leaves its network.
const weightsFile = "weights.safetensors"

// config returns the environment's settings: RLScheduler's machine with its back-filling, and its eight numbers of a
// job with those of what is known of run times.
func (s *settings) config(rung string) queuerank.Config {
	c := queuerank.DefaultConfig()
	c.Window, c.Backfill, c.Estimates, c.Forecast = s.Window, "easy", sim.MustEstimates(rung), "on"
	c.Reward, c.Base, c.Load = s.Reward, "sjf", s.Load
	return c
}

// machine returns the machine of a log.
func machine(procs int) cluster.Spec {
	return cluster.Spec{Name: fmt.Sprintf("swf-%d", procs), Pool: procs}
}

// slow is an environment whose steps take longer.
type slow struct {
	env.Env
	by time.Duration
}

// Step implements env.Env.
func (s slow) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	time.Sleep(s.by)
	return s.Env.Step(ctx, a, ts)
}

// job says how an agent is trained.
type job struct {
	rung     string
	replicas int
	envs     int
	seed     uint64
	steps    int64
	workers  int
	share    float64       // ppo.preempt_share
	delay    time.Duration // of the steps of the last replica
}

// learner is PPO in one replica or several.
type learner interface {
	agents.Agent
	Params() *nets.Params
}

// trained is what came of a training.
type trained struct {
	agent   learner
	records []train.Record
	weights [][]float32 // at the beginning and after each of the first settings.Updates updates
	took    time.Duration
	step    int64
	updates int64
}

// run trains an agent on windows of x.
func (s *settings) run(ctx context.Context, b *study.Bench, x *index, o job) (*trained, error) {
	var envs []env.Env
	for i := range o.envs {
		e, err := queuerank.New(s.config(o.rung), machine(x.procs), x, x.maxima, traces.Training)
		if err != nil {
			return nil, err
		}
		if own := env.Env(e); o.delay > 0 && i >= o.envs-o.envs/o.replicas {
			envs = append(envs, slow{own, o.delay})
		} else {
			envs = append(envs, own)
		}
	}
	v, err := vec.New(vec.Config{Workers: o.workers, Autoreset: vec.SameStep}, envs...)
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // environments hold only memory
	cfg := s.PPO
	cfg.Replicas, cfg.PreemptShare = o.replicas, o.share
	cfg.Shards = max(1, cfg.Shards/o.replicas) // pieces of the same size
	t := &trained{}
	if o.replicas == 1 {
		t.agent, err = ppo.New(cfg, v.Spec(), o.envs, o.workers, o.seed)
	} else {
		t.agent, err = ppo.NewReplicas(cfg, v.Spec(), o.envs, o.workers, o.seed)
	}
	if err != nil {
		return nil, err
	}
	tc := train.DefaultConfig()
	batch := int64(o.envs) * int64(cfg.Steps)
	tc.Steps, tc.Envs, tc.LogEvery, tc.EvalEvery, tc.CheckpointEvery = o.steps, o.envs, max(batch, o.steps/8), 0, 0
	trainer, err := train.New(tc, v, t.agent, o.seed)
	if err != nil {
		return nil, err
	}
	keep := func() { t.weights = append(t.weights, slices.Clone(t.agent.Params().Data)) }
	keep()
	begin := time.Now()
	err = trainer.Run(ctx, train.Hooks{
		Tick: func(p train.Progress) error {
			if len(t.weights) <= s.Updates && p.Step >= int64(len(t.weights))*batch {
				keep()
			}
			b.Progress(p.Step, o.steps)
			return nil
		},
		Log: func(r train.Record) error {
			t.records = append(t.records, r)
			t.updates = r.Updates
			return nil
		},
	})
	t.took, t.step = time.Since(begin), trainer.Step()
	return t, err
}

// save writes the network to a folder.
func (t *trained) save(dir string) error {
	var w io.WriterTo
	for _, p := range t.agent.Parts() {
		if p.Name() == weightsFile {
			w = p
		}
	}
	f, err := os.Create(filepath.Join(dir, weightsFile))
	if err != nil {
		return err
	}
	if _, err := w.WriteTo(f); err != nil {
		_ = f.Close() // the fault of writing matters more
		return err
	}
	return f.Close()
}

// curve returns the rows of the learning curve.
func (t *trained) curve(labels map[string]string) (rows []study.Row) {
	for _, r := range t.records {
		row := study.RowOf("curve", study.With(labels, "samples", r.Step))
		rows = append(rows, row("return", r.Return))
		for _, st := range r.Learn {
			if st.Name == "value_loss" || st.Name == "entropy" {
				rows = append(rows, row(st.Name, st.Value))
			}
		}
	}
	return slices.DeleteFunc(rows, func(r study.Row) bool { return math.IsNaN(r.Value) })
}

// collected returns which share of full rollouts updates have learnt from: 1 if replicas step together.
func (t *trained) collected() float64 {
	sum, n := 0.0, 0
	for _, r := range t.records { // of equal lengths
		for _, st := range r.Learn {
			if st.Name == "ppo/collected" {
				sum, n = sum+st.Value, n+1
			}
		}
	}
	if n == 0 {
		return 1
	}
	return sum / float64(n)
}

// train trains an agent, and keeps its network in the cell's folder.
func (s *settings) train(ctx context.Context, b *study.Bench, x *index, o job) ([]study.Row, error) {
	t, err := s.run(ctx, b, x, o)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{"run times": o.rung, "replicas": fmt.Sprint(o.replicas), "seed": fmt.Sprint(o.seed)}
	return t.curve(labels), t.save(b.Work())
}

// compare compares the first updates of numbers of replicas with those of one, and every training with itself on other
// numbers of workers.
func (s *settings) compare(ctx context.Context, b *study.Bench, x *index) (rows []study.Row, err error) {
	batch := int64(s.Envs) * int64(s.PPO.Steps)
	var one *trained
	for _, n := range s.Replicas {
		o := job{rung: known, replicas: n, envs: s.Envs, seed: 1, steps: batch * int64(s.Updates), workers: 1}
		t, err := s.run(ctx, b, x, o)
		if err != nil {
			return nil, err
		}
		if one == nil {
			one = t
		}
		o.workers = 3
		again, err := s.run(ctx, b, x, o)
		if err != nil {
			return nil, err
		}
		for k := 1; k < len(t.weights); k++ {
			if k > 3 && k != len(t.weights)-1 {
				continue
			}
			row := study.RowOf("equal", map[string]string{"replicas": fmt.Sprint(n), "update": fmt.Sprint(k)})
			moved := apart(one.weights[k], one.weights[0])
			rows = append(rows, row("distance", apart(t.weights[k], one.weights[k])/moved),
				row("same", same(t.weights[k], again.weights[k])))
		}
	}
	return rows, nil
}

// same returns 1 if two vectors are equal, else 0.
func same(a, b []float32) float64 {
	if slices.Equal(a, b) {
		return 1
	}
	return 0
}

// apart returns the Euclidean distance of two vectors.
func apart(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}

// speed measures how many samples a second n replicas learn from.
func (s *settings) speed(ctx context.Context, b *study.Bench, x *index, n int) ([]study.Row, error) {
	t, err := s.run(ctx, b, x,
		job{rung: known, replicas: n, envs: s.Envs, seed: 1, steps: s.SpeedSteps, workers: b.Workers})
	if err != nil {
		return nil, err
	}
	row, rate := study.RowOf("speed", map[string]string{"replicas": fmt.Sprint(n)}), float64(t.step)/t.took.Seconds()
	return []study.Row{
		row("timing_samples_s", rate), row("timing_epoch_h", float64(x.jobs)/rate/3600),
		row("timing_processors", float64(runtime.GOMAXPROCS(0))),
	}, nil
}

// Ways of replicas with a straggler.
const (
	noneSlow  = "all alike, together"
	oneSlow   = "one slow, together"
	oneWaits  = "one slow, share 1"
	oneCut    = "one slow, cut short"
	noneSlowC = "all alike, cut short"
)

var ways = []string{noneSlow, oneSlow, oneWaits, oneCut, noneSlowC}

// straggle measures the rule for slow replicas. All but the comparison of weights depends on the clock.
func (s *settings) straggle(ctx context.Context, b *study.Bench, x *index) (rows []study.Row, err error) {
	g := &s.Straggler
	var together *trained
	for _, way := range ways {
		o := job{rung: known, replicas: g.Replicas, envs: g.Envs, seed: 1, steps: g.Steps, workers: b.Workers}
		if way != noneSlow && way != noneSlowC {
			o.delay = g.Delay
		}
		switch way {
		case oneWaits:
			o.share = 1
		case oneCut, noneSlowC:
			o.share = g.Share
		}
		t, err := s.run(ctx, b, x, o)
		if err != nil {
			return nil, err
		}
		row := study.RowOf("straggler", map[string]string{"way": way})
		if together == nil {
			together = t
		}
		if way == oneSlow || way == oneWaits {
			rows = append(rows, row("same", same(t.agent.Params().Data, together.agent.Params().Data)))
		}
		last, took := t.records[len(t.records)-1], t.took.Seconds()
		rows = append(rows, row("timing_s", took), row("timing_samples_s", float64(t.step)/took),
			row("timing_updates_s", float64(t.updates)/took), row("timing_collected", t.collected()),
			row("timing_return", last.Return))
	}
	return rows, nil
}
