package dally

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/agents/ppo"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/experiments/study"
	"clustergym/experiments/study/cell"
	"clustergym/internal/rng"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/delay"
)

// The acceptors that are not policies, by their names in the tables.
const (
	learnedDrawing = "learned, drawing"
	learnedGreedy  = "learned, greedy"
	learnedBlind   = "learned without run times, greedy"
	randomAnswers  = "random"
)

// acceptorConfig returns the run that trains an acceptor of offers in an order. A blind acceptor sees no run times; the
// timers see none either.
func (s *settings) acceptorConfig(ask string, seed int, blind bool) config.Config {
	c := s.Agent
	c.Env.Args = append(slices.Clone(c.Env.Args), "ask="+ask)
	if blind {
		c.Env.Args = append(c.Env.Args, "estimates=none")
	}
	// the study compares acceptors itself, and some default policies rank by run times, which blind ones lack
	c.Eval.Policies = nil
	c.Seed = uint64(seed)
	c.Train.Steps = s.TrainSteps
	c.Train.ImitateSteps = min(c.Train.ImitateSteps, s.TrainSteps/2)
	c.Train.EvalEvery = max(25_000, s.TrainSteps/20) // validating an agent that declines every offer takes long
	c.Train.CheckpointEvery = c.Train.EvalEvery
	return c
}

// acceptorCells returns the cells that train acceptors for DelayOffer-v1, and those that play all acceptors on the same
// test episodes.
func (s *settings) acceptorCells() (all []study.Cell, err error) {
	// text returns the whole run for the inputs of cells, so that a changed acceptor.yaml computes them again.
	text := func(c config.Config) string {
		b, fault := configs.Encode(&c)
		err = errors.Join(err, fault)
		return string(b)
	}
	// A seed is that of a training, so the inputs of rules have none.
	untrained := func(ask string) (config.Config, string) {
		return s.acceptorConfig(ask, 1, false), text(s.acceptorConfig(ask, 0, false))
	}
	for _, ask := range delay.Asks() {
		c, input := untrained(ask)
		for _, r := range answerers() {
			all = append(all, s.ruleCell(ask, r, c, input))
		}
		for k := range s.TrainSeeds {
			for _, blind := range []bool{false, true} {
				c := s.acceptorConfig(ask, k+1, blind)
				all = append(all, s.learnedCells(ask, k+1, blind, c, text(c))...)
			}
		}
	}
	c, input := untrained("las")
	return append(all, s.playedCell("las", c, input)), err
}

// answerer is a rule that answers offers, with changes of the environment's settings.
type answerer struct {
	name, key string
	sets      []string
}

// answerers returns the rules that answer offers.
func answerers() []answerer {
	wait := []string{"auto=false", "rack_wait=1e6", "nw_wait=1e6"}
	return []answerer{
		{tunedTimers, "tuned", nil}, {fixedTimers, "fixed", []string{"auto=false", "rack_wait=5", "nw_wait=10"}},
		{waitForNearest, "never", wait}, {longGiveWay, "give-way", wait},
		{acceptAtOnce, "at-once", []string{"auto=false", "rack_wait=0", "nw_wait=0"}}, {randomAnswers, "random", nil},
	}
}

// answer returns the rule's answer to the current offer of e.
func (a answerer) answer(e *delayoffer.Env, ts *env.TimeStep, r *rand.Rand) (int32, error) {
	switch {
	case a.name == randomAnswers && ts.Mask[delayoffer.Decline]:
		return int32(r.IntN(2)), nil
	case a.name == randomAnswers:
		return delayoffer.Accept, nil
	case a.name == longGiveWay && givesWay(e, ts):
		return delayoffer.Decline, nil
	}
	return e.Timely(), nil
}

// ruleCell returns the cell that plays a rule on the test windows. c is the run of an acceptor, whose environment is
// played.
func (s *settings) ruleCell(ask string, by answerer, c config.Config, text string) study.Cell {
	return study.Cell{
		Key: "acceptors/" + ask + "/" + by.key, Input: []any{method, by.name, s.Windows, s.TestSeed, text},
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return s.judgeAcceptor(ctx, b, &c, by.sets, ask, by.name, "", by.answer)
		},
	}
}

// playedCell returns the cell in which the policy delay-las plays the test windows instead of answering offers.
func (s *settings) playedCell(ask string, c config.Config, text string) study.Cell {
	return study.Cell{
		Key: "acceptors/" + ask + "/delay-las", Input: []any{method, s.Windows, s.TestSeed, text},
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			e, err := s.openOffers(&c, nil)
			if err != nil {
				return nil, err
			}
			defer e.Close() //nolint:errcheck // the environment holds no resources
			sch, err := schedulers.New(policyConfig(delayLAS))
			if err != nil {
				return nil, err
			}
			var rows []study.Row
			for w := range s.Windows {
				var m metrics.Collector
				if err := e.Simulate(ctx, testWindow(w), sch, &m); err != nil {
					return nil, err
				}
				got := outcomeOf(&m)
				row := study.RowOf("acceptors", map[string]string{"order": ask, "acceptor": delayLAS, "window": fmt.Sprint(w)})
				rows = append(rows, row("jct_h", got.jct), row("comm_h", got.comm))
				b.Progress(int64(w+1), int64(s.Windows))
			}
			return rows, nil
		},
	}
}

// learnedCells returns the cells that train an acceptor by the run c and play it on the test windows.
func (s *settings) learnedCells(ask string, seed int, blind bool, c config.Config, text string) []study.Cell {
	key, judged := fmt.Sprintf("train/%s/%d", ask, seed), fmt.Sprintf("acceptors/%s/learned-%d", ask, seed)
	if blind {
		key, judged = fmt.Sprintf("train-blind/%s/%d", ask, seed), fmt.Sprintf("acceptors/%s/blind-%d", ask, seed)
	}
	return []study.Cell{{
		Key: key, Input: []any{method, text},
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			own, err := c.Fold()
			if err == nil {
				_, err = cell.Train(ctx, b, own, nil)
			}
			return nil, err
		},
	}, {
		Key: judged, After: []string{key}, Input: []any{method, s.Windows, s.TestSeed},
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return s.judgeLearned(ctx, b, &c, filepath.Join(b.WorkOf(key), "run"), ask, seed, blind)
		},
	}}
}

// short bounds the jobs that a long gang gives way to: their remaining time is below this share of the gang's. It is
// the best of a half, a fifth, a tenth, a twentieth and a fortieth on the validation windows.
const short = 1. / 5

// givesWay reports whether the offer is to a gang larger than a machine while another waiting job has much less time
// left.
func givesWay(e *delayoffer.Env, ts *env.TimeStep) bool {
	o, v := e.Offer(), e.View()
	if v.Request(o.Job).GPUs <= v.Cluster().MaxNode() || !ts.Mask[delayoffer.Decline] {
		return false
	}
	for _, j := range v.Waiting() {
		if j != o.Job && v.Left(j) < short*v.Left(o.Job) {
			return true
		}
	}
	return false
}

// judgeLearned plays the acceptor that was trained in the folder trained: the weights with the best validation,
// greedily, and if it is not blind also the last weights, which draw their answers as in training.
func (s *settings) judgeLearned(ctx context.Context, b *study.Bench, c *config.Config, trained, ask string, seed int,
	blind bool) ([]study.Row, error) {
	own, err := c.Fold()
	if err != nil {
		return nil, err
	}
	p, err := arena.NewProblem(&own)
	if err != nil {
		return nil, err
	}
	last, err := checkpoint.Latest(filepath.Join(trained, rundir.Checkpoints))
	if err != nil {
		return nil, err
	}
	plays := []struct{ name, dir string }{{learnedDrawing, last}, {learnedGreedy, trained}}
	if blind {
		plays = []struct{ name, dir string }{{learnedBlind, trained}}
	}
	var rows []study.Row
	for _, of := range plays {
		policy, err := arena.Trained(of.dir, p.About)
		if err != nil {
			return nil, err
		}
		if d, ok := policy.(*ppo.Policy); ok && of.name == learnedDrawing {
			policy = d.Sampling()
		}
		got, err := s.judgeAcceptor(ctx, b, c, nil, ask, of.name, fmt.Sprint(seed), learnedAnswer(ctx, policy, p.About))
		if err != nil {
			return nil, err
		}
		rows = append(rows, got...)
	}
	return rows, nil
}

// learnedAnswer returns a function that answers offers with a trained policy.
func learnedAnswer(ctx context.Context, policy agents.Policy, about env.Spec) func(*delayoffer.Env, *env.TimeStep,
	*rand.Rand) (int32, error) {
	batch, act := env.NewBatch(about, 1), env.NewActions(about, 1)
	return func(_ *delayoffer.Env, ts *env.TimeStep, r *rand.Rand) (int32, error) {
		copy(batch.Obs, ts.Obs)
		copy(batch.Mask, ts.Mask)
		batch.Kind[0] = ts.Kind
		if err := policy.Act(ctx, batch, act, []*rand.Rand{r}); err != nil {
			return 0, err
		}
		return act.Disc[0], nil
	}
}

// openOffers opens the environment of c with more settings, for whole windows of the log that acceptors are judged on.
func (s *settings) openOffers(c *config.Config, sets []string) (*delayoffer.Env, error) {
	own := *c
	if s.TestSeed > 0 {
		sets = append(slices.Clone(sets), fmt.Sprintf("trace.seed=%d", s.TestSeed))
	}
	own.Env.Args = append(append([]string{"max_steps=0"}, c.Env.Args...), sets...)
	own, err := own.Fold()
	if err != nil {
		return nil, err
	}
	p, err := arena.NewProblem(&own)
	if err != nil {
		return nil, err
	}
	opened, err := p.Open()
	if err != nil {
		return nil, err
	}
	e, ok := opened.(*delayoffer.Env)
	if !ok {
		return nil, fmt.Errorf("%s is a %T", c.Env.ID, opened)
	}
	return e, nil
}

// testWindow returns the episode of a test window.
func testWindow(w int) env.Episode {
	return env.Episode{Seed: env.EpisodeSeed(1, w), Window: w, Split: env.SplitTest}
}

// judgeAcceptor plays the test windows with the answers that answer returns, and reports completion times,
// communication and the share of accepted offers.
func (s *settings) judgeAcceptor(ctx context.Context, b *study.Bench, c *config.Config, sets []string, ask, name,
	seed string,
	answer func(*delayoffer.Env, *env.TimeStep, *rand.Rand) (int32, error),
) ([]study.Row, error) {
	e, err := s.openOffers(c, sets)
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // the environment holds no resources
	ts := env.NewTimeStep(e.Spec())
	var rows []study.Row
	for w := range s.Windows {
		r := rng.Stream(uint64(w), "dally/answers")
		offers, accepted := 0, 0
		_, _, err := env.Play(ctx, e, testWindow(w), ts, func(ts *env.TimeStep, act env.Action) error {
			if offers%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if offers > 5_000_000 {
				return fmt.Errorf("%s answers five million offers of one window", name)
			}
			a, err := answer(e, ts, r)
			if err != nil {
				return err
			}
			offers++
			if a == delayoffer.Accept {
				accepted++
			}
			act.Disc[0] = a
			return nil
		})
		if err != nil {
			return nil, err
		}
		labels := map[string]string{"order": ask, "acceptor": name, "window": fmt.Sprint(w)}
		if seed != "" {
			labels["seed"] = seed
		}
		row := study.RowOf("acceptors", labels)
		rows = append(rows, row("jct_h", ts.Info[delayoffer.InfoJCT]/3600),
			row("comm_h", ts.Info[delayoffer.InfoCommunication]/3600), row("accepted", float64(accepted)/float64(offers)))
		b.Progress(int64(w+1), int64(s.Windows))
	}
	return rows, nil
}
