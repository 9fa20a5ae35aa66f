package dally

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/agents/ppo"
	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/experiments/run"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
	"clustergym/traces/profile"
)

const (
	dallyLearned = "learned, drawing"
	dallyGreedy  = "learned, greedy"
	dallyBlind   = "learned without run times, greedy"
	dallyRandom  = "random"
)

// dallyMix is how often the six models come.
func dallyMix() (profile.Mix, error) { return profile.Named("dally") }

// acceptorConfig is the training of an acceptor; one that is blind knows nothing of run times, as the timers do.
func acceptorConfig(s dallySettings, seed int, blind bool) (run.Config, error) {
	c, err := run.DecodeConfig("acceptor.yaml", acceptorYAML)
	if blind {
		c.Env.Args = append(c.Env.Args, "estimates=none")
	}
	c.Seed = uint64(seed)
	c.Train.Steps = s.TrainSteps
	c.Train.EvalEvery = max(25_000, s.TrainSteps/20) // a validation of who declines everything takes long
	c.Train.CheckpointEvery = c.Train.EvalEvery
	return c, err
}

// acceptorCells train acceptors for DelayOffer-v1, and judge them and others on the same test episodes.
func acceptorCells(s dallySettings) []study.Cell {
	// Another preset makes other cells.
	about := func(seed int, blind bool) string {
		c, err := acceptorConfig(s, seed, blind)
		if err != nil {
			return err.Error() // the cell's own run says it too
		}
		text, err := configs.Encode(&c)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	var cells []study.Cell
	for _, name := range []string{dallyAuto, dallyFixed, dallyNever, dallyGive, dallyAccept, dallyRandom} {
		key := map[string]string{dallyAuto: "tuned", dallyFixed: "fixed", dallyNever: "never", dallyGive: "give-way", dallyAccept: "at-once", dallyRandom: "random"}[name]
		cells = append(cells, study.Cell{
			Key: "acceptors/" + key, Input: []any{dallyMethod, name, s.Windows, about(0, false)},
			Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				c, err := acceptorConfig(s, 1, false)
				if err != nil {
					return nil, err
				}
				var sets []string
				switch name {
				case dallyFixed:
					sets = []string{"auto=false", "rack_wait=5", "nw_wait=10"}
				case dallyNever, dallyGive:
					sets = []string{"auto=false", "rack_wait=1e6", "nw_wait=1e6"}
				case dallyAccept:
					sets = []string{"auto=false", "rack_wait=0", "nw_wait=0"}
				}
				return judgeAcceptor(ctx, b, &c, sets, s.Windows, name, "", func(e *delayoffer.Env, ts *env.TimeStep, r *rand.Rand) (int32, error) {
					if name == dallyRandom {
						if ts.Mask[delayoffer.Decline] {
							return int32(r.IntN(2)), nil
						}
						return delayoffer.Accept, nil
					}
					if name == dallyGive && givesWay(e, ts) {
						return delayoffer.Decline, nil
					}
					return e.Timely(), nil
				})
			},
		})
	}
	for k := range s.TrainSeeds {
		seed := k + 1
		for _, blind := range []bool{false, true} {
			key, judged := fmt.Sprintf("train/%d", seed), fmt.Sprintf("acceptors/learned-%d", seed)
			if blind {
				key, judged = fmt.Sprintf("train-blind/%d", seed), fmt.Sprintf("acceptors/blind-%d", seed)
			}
			cells = append(cells, study.Cell{
				Key: key, Input: []any{dallyMethod, about(seed, blind)},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					c, err := acceptorConfig(s, seed, blind)
					if err != nil {
						return nil, err
					}
					return nil, trainAcceptor(ctx, b, c)
				},
			}, study.Cell{
				Key: judged, After: []string{key}, Input: []any{dallyMethod, s.Windows},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					c, err := acceptorConfig(s, seed, blind)
					if err != nil {
						return nil, err
					}
					return judgeLearned(ctx, b, &c, filepath.Join(b.WorkOf(key), "run"), s.Windows, seed, blind)
				},
			})
		}
	}
	return cells
}

// short is how much of its own remaining time another job may have left for a gang to give way to it: the best of a
// half, a fifth, a tenth, a twentieth and a fortieth on the validation windows.
const short = 1. / 5

// givesWay says whether a gang larger than a machine is asked while a job waits that has much less left.
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

// trainAcceptor trains in the cell's folder, or goes on there.
func trainAcceptor(ctx context.Context, b *study.Bench, c run.Config) error {
	dir := filepath.Join(b.Work(), "run")
	_, err := os.Stat(filepath.Join(dir, run.ConfigFile))
	_, err = run.Train(ctx, c, run.TrainOptions{
		RunDir: dir, Resume: err == nil, Workers: b.Workers, NoEval: true,
		Tick: func(p train.Progress) { b.Progress(p.Step, c.Train.Steps) },
	})
	if errors.Is(err, run.ErrInterrupted) {
		return ctx.Err()
	}
	return err
}

// judgeLearned judges what was trained in the folder trained: the best of its validations, played greedily, and, where it
// is not blind, what it was at the end, drawing as it was trained.
func judgeLearned(ctx context.Context, b *study.Bench, c *run.Config, trained string, windows, seed int, blind bool) ([]study.Row, error) {
	p, err := run.NewProblem(c)
	if err != nil {
		return nil, err
	}
	last, err := checkpoint.Latest(filepath.Join(trained, run.Checkpoints))
	if err != nil {
		return nil, err
	}
	plays := []struct{ name, dir string }{{dallyLearned, last}, {dallyGreedy, trained}}
	if blind {
		plays = []struct{ name, dir string }{{dallyBlind, trained}}
	}
	var rows []study.Row
	for _, of := range plays {
		found, err := run.OpenCheckpoint(of.dir, p.About)
		if err != nil {
			return nil, err
		}
		policy, err := run.NewPolicy(&found.Cfg, p.About, bytes.NewReader(found.Weights))
		if err != nil {
			return nil, err
		}
		if d, ok := policy.(*ppo.Policy); ok && of.name == dallyLearned {
			policy = d.Sampling()
		}
		got, err := judgeAcceptor(ctx, b, c, nil, windows, of.name, fmt.Sprint(seed), learnedAnswer(ctx, policy, p.About))
		if err != nil {
			return nil, err
		}
		rows = append(rows, got...)
	}
	return rows, nil
}

// learnedAnswer is a trained policy's answer.
func learnedAnswer(ctx context.Context, policy agents.Policy, about env.Spec) func(*delayoffer.Env, *env.TimeStep, *rand.Rand) (int32, error) {
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

// judgeAcceptor plays the test windows and counts.
func judgeAcceptor(ctx context.Context, b *study.Bench, c *run.Config, sets []string, windows int, name, seed string,
	answer func(*delayoffer.Env, *env.TimeStep, *rand.Rand) (int32, error),
) ([]study.Row, error) {
	own := *c
	own.Env.Args = append(append([]string{"max_steps=0"}, c.Env.Args...), sets...)
	p, err := run.NewProblem(&own)
	if err != nil {
		return nil, err
	}
	opened, err := p.Open()
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // it holds nothing
	e, ok := opened.(*delayoffer.Env)
	if !ok {
		return nil, fmt.Errorf("%s is a %T", c.Env.ID, opened)
	}
	ts := env.NewTimeStep(e.Spec())
	var rows []study.Row
	for w := range windows {
		if err := e.Reset(ctx, env.Episode{Seed: env.EpisodeSeed(1, w), Window: w, Split: env.SplitTest}, ts); err != nil {
			return nil, err
		}
		r := rng.Stream(uint64(w), "dally/answers")
		offers, accepted := 0, 0
		for !ts.Kind.Last() {
			a, err := answer(e, ts, r)
			if err != nil {
				return nil, err
			}
			offers++
			if a == delayoffer.Accept {
				accepted++
			}
			if err := e.Step(ctx, env.Action{Disc: []int32{a}}, ts); err != nil {
				return nil, err
			}
			if offers%4096 == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if offers > 5_000_000 {
				return nil, fmt.Errorf("%s answers five million offers of one window", name)
			}
		}
		labels := map[string]string{"acceptor": name, "window": fmt.Sprint(w)}
		if seed != "" {
			labels["seed"] = seed
		}
		rows = append(rows,
			study.Row{Table: "acceptors", Labels: labels, Metric: "jct_h", Value: ts.Info[delayoffer.InfoJCT] / 3600},
			study.Row{Table: "acceptors", Labels: labels, Metric: "comm_h", Value: ts.Info[delayoffer.InfoCommunication] / 3600},
			study.Row{Table: "acceptors", Labels: labels, Metric: "accepted", Value: float64(accepted) / float64(offers)},
		)
		b.Progress(int64(w+1), int64(windows))
	}
	return rows, nil
}
