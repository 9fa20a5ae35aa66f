package benchmark

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"clustergym/internal/fault"
	"clustergym/internal/safefile"
	"clustergym/lab/arena"
	"clustergym/lab/config"
)

// PlayRules plays random play and every rule of tasks, each into a folder of opt.Dir by the rule's name: what Play
// makes of each of them, to the same bytes, in less time, for the rules of a task play together. What the folders have
// is not played again. It returns the results by rule.
func (v *Version) PlayRules(ctx context.Context, opt Options) ([]*Results, error) {
	if opt.Tasks == nil {
		opt.Tasks, _ = v.Match()
	}
	var names []string // of all rules, each once
	byTask := map[string][]string{}
	for _, t := range opt.Tasks {
		for _, name := range append([]string{Random}, t.Rules...) {
			if byTask[name] = append(byTask[name], t.Name); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, t := range opt.Tasks {
		if err := v.playRules(ctx, t, opt); err != nil {
			if ctx.Err() != nil {
				err = opt.interrupted()
			}
			return nil, err
		}
	}
	var all []*Results
	for _, name := range names {
		own := opt
		own.Dir, own.Say = filepath.Join(opt.Dir, name), nil
		own.Tasks = slices.DeleteFunc(slices.Clone(opt.Tasks), func(t *Task) bool {
			return !slices.Contains(byTask[name], t.Name)
		})
		r, err := v.Play(ctx, alone(name), own)
		if none := new(noneError); errors.As(err, &none) {
			continue // its tasks cannot be played here
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// alone returns the policy that plays one rule on all tasks that have it.
func alone(rule string) *Policy { return &Policy{Name: rule, Kind: KindRule, Rules: []string{rule}} }

// playRules plays the rules of one task that are not in their folders.
func (v *Version) playRules(ctx context.Context, t *Task, opt Options) error {
	cfg, err := t.Config()
	if err != nil {
		return err
	}
	all := &playing{v: v, opt: opt}
	if why := all.unplayed(t, &cfg); why != "" {
		all.say("%s: left out: %s", t.Name, why)
		return nil
	}
	var players []*playing
	cfg.Eval.Policies = nil
	for _, name := range append([]string{Random}, t.Rules...) {
		g := &playing{v: v, policy: alone(name), opt: opt}
		g.opt.Dir = filepath.Join(opt.Dir, name)
		leave, err := g.enter()
		if err != nil {
			return err
		}
		defer leave()
		had, err := g.readPart(t, 0)
		if err != nil {
			return err
		}
		if had == nil {
			players, cfg.Eval.Policies = append(players, g), append(cfg.Eval.Policies, name)
		}
	}
	if len(players) == 0 {
		return nil
	}
	scored, err := players[0].scores(ctx, t, cfg)
	if err != nil {
		return fmt.Errorf("task %s: %w", t.Name, err)
	}
	for i, g := range players {
		if err := g.keep(t, &cfg, &scored[i]); err != nil {
			return err
		}
	}
	return nil
}

// scores plays the policies of cfg on t.
func (g *playing) scores(ctx context.Context, t *Task, cfg config.Config) ([]arena.Scored, error) {
	w, err := g.scenario(ctx, t, &cfg)
	if err != nil {
		return nil, err
	}
	opt := arena.EvalOptions{Scenario: w, Workers: g.opt.Workers}
	if g.opt.Game != nil {
		opt.Game = func(done, all int) { g.opt.Game(t.Name+", all rules", done, all) }
	}
	return arena.Scores(ctx, cfg, opt)
}

// keep writes what a rule reaches on t as its only run.
func (g *playing) keep(t *Task, cfg *config.Config, s *arena.Scored) error {
	p, err := g.partOf(t, cfg, s)
	if err != nil {
		return err
	}
	dir := filepath.Join(g.opt.Dir, partsDir, t.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return &fault.Mistake{Err: err}
	}
	if err := safefile.Write(filepath.Join(dir, "runs"), []byte(strconv.Itoa(1))); err != nil {
		return err
	}
	p.Seal = g.seal(t, 0, p)
	return safefile.WriteJSON(g.partFile(t, 0), p)
}
