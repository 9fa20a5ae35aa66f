package rlscheduler

import (
	"context"
	"fmt"
	"maps"
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
var rules = []string{"fcfs", "wfp3-rlscheduler", "unicep-rlscheduler", "sjf", "f1", "f2", "f3", "f4", "smallest",
	"smallest-area", "wfp3", "unicep"}

// tuneSeed and searchSeed decide the draws.
const tuneSeed, searchSeed = 1, 1

// modes are the values of label back-filling.
var modes = []string{"no", "yes"}

// field is a log on a machine without or with back-filling, as mode says.
type field struct {
	*settings
	o     *logSettings
	mode  string
	of    string   // identifies the log and the fresh files
	files []string // recorded fresh logs
	jobs  func() ([]peer.Job, error)
}

// runner computes the rows of a cell from the jobs of the log, player from the windows of a set. read are the rows of
// the cell that it comes after, if there is one.
type (
	runner func(ctx context.Context, b *study.Bench, log []peer.Job, read []study.Row) ([]study.Row, error)
	player func(ctx context.Context, b *study.Bench, set string, windows []window, read []study.Row) ([]study.Row, error)
)

// cells returns the study's units of work: for each log without and with back-filling a key that is tuned, then by set
// of windows the rules and the key, the search, and a trained agent where the plan has one.
func (s *settings) cells(p study.Plan) (all []study.Cell, err error) {
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
	for i := range logs {
		o := &logs[i]
		of, err := digest(context.Background(), o, files)
		if err != nil {
			return nil, err
		}
		jobs := sync.OnceValues(func() ([]peer.Job, error) { return o.load(context.Background()) })
		for _, mode := range modes {
			f := &field{s, o, mode, of, files, jobs}
			all = append(all, f.cells(played)...)
		}
	}
	return all, nil
}

// cells returns the cells of a log on a machine.
func (f *field) cells(played []*trained) []study.Cell {
	name := f.o.Name + "/back-filling-" + f.mode
	tune, tuneState := "tune/"+name, "tune-state/"+name
	all := []study.Cell{
		f.on(tune, map[string]any{"tune": f.Tune, "seed": tuneSeed}, nil, f.tune),
		f.on(tuneState, map[string]any{"tune": f.State, "seed": tuneSeed}, []string{tune}, f.tuneState),
	}
	for _, set := range f.o.sets(f.files) {
		// A cell plays the windows of the set, and may read the rows of another one.
		add := func(kind string, more map[string]any, reads string, play player) {
			input := map[string]any{"set": set}
			if set == fresh {
				input["fresh"] = f.Fresh
			}
			maps.Copy(input, more)
			var after []string
			if reads != "" {
				after = []string{reads}
			}
			key := kind + "/" + name + "/" + strings.ReplaceAll(set, " ", "-")
			all = append(all, f.on(key, input, after, f.onWindows(set, play)))
		}
		add("rules", nil, tune, f.playRules)
		add("state", nil, tuneState, f.playState)
		add("search", map[string]any{"search": f.Search, "seed": searchSeed}, tune, f.playSearch)
		for _, t := range played {
			if t.log == f.o.Name {
				agent := map[string]any{"network": t.identity(), "draws": f.Draws, "seed": drawSeed}
				add("network", agent, "", f.playNetwork(t))
			}
		}
	}
	return all
}

// on returns a cell that runs on the jobs of the log, and with the rows of the cell that it comes after.
func (f *field) on(key string, input map[string]any, after []string, run runner) study.Cell {
	input["method"], input["digest"] = method, f.of
	c := study.Cell{Key: key, Input: input, After: after}
	c.Run = func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
		log, err := f.jobs()
		if err != nil {
			return nil, err
		}
		var rows []study.Row
		for _, before := range after {
			rows = b.Rows(before)
		}
		return run(ctx, b, log, rows)
	}
	return c
}

// onWindows returns a runner that plays the windows of a set.
func (f *field) onWindows(set string, play player) runner {
	return func(ctx context.Context, b *study.Bench, log []peer.Job, read []study.Row) ([]study.Row, error) {
		windows, err := f.windows(ctx, f.o, log, set, f.files)
		if err != nil {
			return nil, err
		}
		return play(ctx, b, set, windows, read)
	}
}

// traits names the weights of a key, in their order: of the job, then of the state.
var traits = [peer.Traits + peer.StateTraits]string{
	"ln r", "ln n", "n/256", "r n/256", "ln r ln n", "submit", "ln r squared", "wide",
	"blocked", "delay", "delay of all", "slowdown", "blocked ln r",
}

// machine returns a new machine.
func (f *field) machine() *peer.Machine { return peer.NewMachine(procs, f.mode == "yes") }

// tune returns the weights of a key that is tuned on the log's training part.
func (f *field) tune(ctx context.Context, b *study.Bench, log []peer.Job, _ []study.Row) ([]study.Row, error) {
	key, err := peer.Tune(ctx, procs, f.mode == "yes", log[:training], f.Tune, tuneSeed, b.Workers)
	if err != nil {
		return nil, err
	}
	return f.weights("key", key[:]), nil
}

// tuneState returns the weights of a key with traits of the state, tuned on the log's training part from the key of
// its jobs, which it reads.
func (f *field) tuneState(ctx context.Context, b *study.Bench, log []peer.Job, read []study.Row) ([]study.Row, error) {
	key, err := peer.TuneState(ctx, procs, f.mode == "yes", log[:training], *keyIn(read), f.State, tuneSeed, b.Workers)
	if err != nil {
		return nil, err
	}
	return f.weights("state key", append(key.Job[:], key.State[:]...)), nil
}

func (f *field) weights(table string, key []float64) (rows []study.Row) {
	for i, w := range key {
		rows = append(rows, study.NewRow(table, "weight", w, "log", f.o.Name, "back-filling", f.mode, "trait", traits[i]))
	}
	return rows
}

// keyIn returns the key whose weights are in rows.
func keyIn(rows []study.Row) *peer.Linear {
	var key peer.Linear
	for i := range rows {
		key[i] = rows[i].Value
	}
	return &key
}

// stateKeyIn returns the key with traits of the state whose weights are in rows.
func stateKeyIn(rows []study.Row) *peer.StateKey {
	key := &peer.StateKey{Job: *keyIn(rows[:peer.Traits])}
	for i, r := range rows[peer.Traits:] {
		key.State[i] = r.Value
	}
	return key
}

// row is the figure of a policy in a window.
func (f *field) row(set, policy string, w *window, metric string, v float64) study.Row {
	return study.NewRow(set, metric, v,
		"log", f.o.Name, "back-filling", f.mode, "policy", policy, "window", w.name, "apart", fmt.Sprint(w.apart))
}

// playRules plays the rules and the tuned key that it reads.
func (f *field) playRules(
	ctx context.Context, _ *study.Bench, set string, windows []window, read []study.Row,
) (rows []study.Row, err error) {
	m, key := f.machine(), keyIn(read)
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
			rows = append(rows, f.row(set, name, w, "bsld", peer.Play(m, rule)))
		}
		rows = append(rows, f.row(set, tuned, w, "bsld", peer.PlayKeyed(m, peer.NewKeyed(key), w.jobs)))
	}
	return rows, nil
}

// playState plays the key with traits of the state that it reads.
func (f *field) playState(
	ctx context.Context, _ *study.Bench, set string, windows []window, read []study.Row,
) (rows []study.Row, err error) {
	m, p := f.machine(), peer.NewStated(stateKeyIn(read))
	for i := range windows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows = append(rows, f.row(set, state, &windows[i], "bsld", peer.PlayStated(m, p, windows[i].jobs)))
	}
	return rows, nil
}

// playSearch plays the tuned key that it reads with a search.
func (f *field) playSearch(
	ctx context.Context, b *study.Bench, set string, windows []window, read []study.Row,
) ([]study.Row, error) {
	rows, key := make([]study.Row, 2*len(windows)), keyIn(read)
	err := par.For(ctx, b.Workers, len(windows), func(_, i int) error {
		w := &windows[i]
		p, err := peer.NewSearch(key, w.pool, f.Search, searchSeed)
		if err != nil {
			return err
		}
		m := f.machine()
		m.Reset(w.jobs)
		for !m.Done() {
			if err := ctx.Err(); err != nil {
				return err
			}
			m.Commit(p.Choose(m))
		}
		t := p.Tally()
		rows[2*i] = f.row(set, search, w, "bsld", m.Mean())
		rows[2*i+1] = f.row(set, search, w, "deviated", float64(t.Deviated)/float64(max(1, t.Decisions)))
		return nil
	})
	return rows, err
}
