package rlscheduler

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"clustergym/experiments/study"
	"clustergym/internal/par"
	peer "clustergym/peer/rlscheduler"
)

// Policies that are no rules.
const (
	tuned  = "tuned"        // the least key, tuned on the training part
	state  = "tuned-state"  // the same with traits of the state, tuned likewise
	search = "tuned+search" // tuned with a search
)

// rules are the rules that are played, as the tables show them.
var rules = []string{"fcfs", "wfp3-rlscheduler", "unicep-rlscheduler", "sjf", "f1", "f2", "f3", "f4", "smallest", "smallest-area", "wfp3", "unicep"}

// tuneSeed and searchSeed decide the draws.
const tuneSeed, searchSeed = 1, 1

// modes are the values of label back-filling.
var modes = []string{"no", "yes"}

// cells returns the study's units of work: for each log without and with back-filling a key that is tuned, then by set of windows the
// rules and the key, the search, and a trained agent where the plan has one.
func (s *settings) cells(p study.Plan) ([]study.Cell, error) {
	logs, _, err := s.given(p)
	if err != nil {
		return nil, err
	}
	files, err := freshFiles(p)
	if err != nil {
		return nil, err
	}
	played, err := s.trained(p)
	if err != nil {
		return nil, err
	}
	var all []study.Cell
	for i := range logs {
		o := &logs[i]
		of, err := digest(context.Background(), o, files)
		if err != nil {
			return nil, err
		}
		jobs := sync.OnceValues(func() ([]peer.Job, error) { return o.load(context.Background()) })
		for _, mode := range modes {
			name := o.Name + "/back-filling-" + mode
			tune := "tune/" + name
			all = append(all, study.Cell{
				Key: tune, Input: map[string]any{"method": method, "digest": of, "tune": s.Tune, "seed": tuneSeed},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					log, err := jobs()
					if err != nil {
						return nil, err
					}
					return s.tune(ctx, b, o, mode, log)
				},
			})
			tuneState := "tune-state/" + name
			all = append(all, study.Cell{
				Key: tuneState, Input: map[string]any{"method": method, "digest": of, "tune": s.State, "seed": tuneSeed}, After: []string{tune},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					log, err := jobs()
					if err != nil {
						return nil, err
					}
					return s.tuneState(ctx, b, o, mode, log, keyIn(b.Rows(tune)))
				},
			})
			for _, set := range o.sets(files) {
				input := map[string]any{"method": method, "digest": of, "set": set}
				if set == fresh {
					input["fresh"] = s.Fresh
				}
				where := name + "/" + strings.ReplaceAll(set, " ", "-")
				all = append(all, study.Cell{
					Key: "rules/" + where, Input: input, After: []string{tune},
					Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
						log, err := jobs()
						if err != nil {
							return nil, err
						}
						return s.playRules(ctx, o, mode, log, set, files, keyIn(b.Rows(tune)))
					},
				})
				all = append(all, study.Cell{
					Key: "state/" + where, Input: input, After: []string{tuneState},
					Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
						log, err := jobs()
						if err != nil {
							return nil, err
						}
						return s.playState(ctx, o, mode, log, set, files, stateKeyIn(b.Rows(tuneState)))
					},
				})
				searched := map[string]any{"search": s.Search, "seed": searchSeed}
				for k, v := range input {
					searched[k] = v
				}
				all = append(all, study.Cell{
					Key: "search/" + where, Input: searched, After: []string{tune},
					Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
						log, err := jobs()
						if err != nil {
							return nil, err
						}
						return s.playSearch(ctx, b, o, mode, log, set, files, keyIn(b.Rows(tune)))
					},
				})
				for _, t := range played {
					if t.log != o.Name {
						continue
					}
					agent := map[string]any{"network": t.identity(), "draws": s.Draws, "seed": drawSeed}
					for k, v := range input {
						agent[k] = v
					}
					all = append(all, study.Cell{
						Key: "network/" + where, Input: agent,
						Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
							log, err := jobs()
							if err != nil {
								return nil, err
							}
							return s.playNetwork(ctx, b, o, mode, log, set, files, t)
						},
					})
				}
			}
		}
	}
	return all, nil
}

// traits names the weights of a key, in their order: of the job, then of the state.
var traits = [peer.Traits + peer.StateTraits]string{
	"ln r", "ln n", "n/256", "r n/256", "ln r ln n", "submit", "ln r squared", "wide",
	"blocked", "delay", "delay of all", "slowdown", "blocked ln r",
}

// tune returns the weights of a key that is tuned on the log's training part.
func (s *settings) tune(ctx context.Context, b *study.Bench, o *logSettings, mode string, log []peer.Job) (rows []study.Row, err error) {
	key, err := peer.Tune(ctx, procs, mode == "yes", log[:training], s.Tune, tuneSeed, b.Workers)
	if err != nil {
		return nil, err
	}
	return weights("key", o, mode, key[:]), nil
}

// tuneState returns the weights of a key with traits of the state, tuned on the log's training part from the key of its jobs.
func (s *settings) tuneState(ctx context.Context, b *study.Bench, o *logSettings, mode string, log []peer.Job, from *peer.Linear) ([]study.Row, error) {
	key, err := peer.TuneState(ctx, procs, mode == "yes", log[:training], *from, s.State, tuneSeed, b.Workers)
	if err != nil {
		return nil, err
	}
	return weights("state key", o, mode, append(key.Job[:], key.State[:]...)), nil
}

func weights(table string, o *logSettings, mode string, key []float64) (rows []study.Row) {
	for i, w := range key {
		labels := map[string]string{"log": o.Name, "back-filling": mode, "trait": traits[i]}
		rows = append(rows, study.Row{Table: table, Labels: labels, Metric: "weight", Value: w})
	}
	return rows
}

// stateKeyIn returns the key whose weights are in rows.
func stateKeyIn(rows []study.Row) *peer.StateKey {
	var key peer.StateKey
	for i := range rows {
		if i < peer.Traits {
			key.Job[i] = rows[i].Value
		} else {
			key.State[i-peer.Traits] = rows[i].Value
		}
	}
	return &key
}

// playState plays the key with traits of the state.
func (s *settings) playState(ctx context.Context, o *logSettings, mode string, log []peer.Job, set string, files []string, key *peer.StateKey) (rows []study.Row, err error) {
	windows, err := s.windows(ctx, o, log, set, files)
	if err != nil {
		return nil, err
	}
	m, p := peer.NewMachine(procs, mode == "yes"), peer.NewStated(key)
	for i := range windows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows = append(rows, row(o, mode, set, state, &windows[i], "bsld", peer.PlayStated(m, p, windows[i].jobs)))
	}
	return rows, nil
}

// keyIn returns the key whose weights are in rows.
func keyIn(rows []study.Row) *peer.Linear {
	var key peer.Linear
	for i := range rows {
		key[i] = rows[i].Value
	}
	return &key
}

// row is the bounded slowdown of a policy in a window.
func row(o *logSettings, mode, set, policy string, w *window, metric string, v float64) study.Row {
	return study.Row{Table: set, Metric: metric, Value: v, Labels: map[string]string{
		"log": o.Name, "back-filling": mode, "policy": policy, "window": w.name, "apart": fmt.Sprint(w.apart),
	}}
}

// playRules plays the rules and the tuned key.
func (s *settings) playRules(ctx context.Context, o *logSettings, mode string, log []peer.Job, set string, files []string, key *peer.Linear) (rows []study.Row, err error) {
	windows, err := s.windows(ctx, o, log, set, files)
	if err != nil {
		return nil, err
	}
	m := peer.NewMachine(procs, mode == "yes")
	for i := range windows {
		w := &windows[i]
		for _, name := range rules {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			rule, err := peer.NewRule(name)
			if err != nil {
				return nil, err
			}
			m.Reset(w.jobs)
			rows = append(rows, row(o, mode, set, name, w, "bsld", peer.Play(m, rule)))
		}
		rows = append(rows, row(o, mode, set, tuned, w, "bsld", peer.PlayKeyed(m, peer.NewKeyed(key), w.jobs)))
	}
	return rows, nil
}

// playSearch plays the tuned key with a search.
func (s *settings) playSearch(ctx context.Context, b *study.Bench, o *logSettings, mode string, log []peer.Job, set string, files []string, key *peer.Linear) ([]study.Row, error) {
	windows, err := s.windows(ctx, o, log, set, files)
	if err != nil {
		return nil, err
	}
	rows := make([][2]study.Row, len(windows))
	err = par.For(ctx, b.Workers, len(windows), func(_, i int) error {
		w := &windows[i]
		p, err := peer.NewSearch(key, w.pool, s.Search, searchSeed)
		if err != nil {
			return err
		}
		m := peer.NewMachine(procs, mode == "yes")
		m.Reset(w.jobs)
		for !m.Done() {
			if err := ctx.Err(); err != nil {
				return err
			}
			m.Commit(p.Choose(m))
		}
		t := p.Tally()
		rows[i][0] = row(o, mode, set, search, w, "bsld", m.Mean())
		rows[i][1] = row(o, mode, set, search, w, "deviated", float64(t.Deviated)/float64(max(1, t.Decisions)))
		return nil
	})
	var all []study.Row
	for i := range rows {
		all = append(all, rows[i][:]...)
	}
	return all, err
}
