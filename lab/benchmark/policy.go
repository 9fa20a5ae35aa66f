package benchmark

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/run"
	"clustergym/simulator/policyname"
)

// The kinds of policies.
const (
	KindRule       = "rule"       // by its name, as in gymctl eval --policies
	KindCheckpoint = "checkpoint" // agents of this program
	KindModel      = "model"      // ONNX models, whatever program trained them
	KindExternal   = "external"   // a program that plays over the bridge
)

// Policy is what plays: one policy for each task, under one name. As JSON it is part of a row.
type Policy struct {
	Name string `json:"name"` // of the row
	Kind string `json:"kind"`
	// Rules choose the rule by task, for KindRule: TASK=RULE where TASK is a name or pattern, or RULE for all other tasks;
	// the last that fits counts. The words best and random stand for the task's best rule and uniform play.
	Rules []string `json:"rules,omitempty"`
	// Set are keys of eval by which rules look ahead or weigh: "eval.rollout.budget=64".
	Set []string `json:"set,omitempty"`

	// Dirs choose the runs, for KindCheckpoint: TASK=DIR, or DIR for all tasks, which then has a folder for each task by
	// its name. A folder of train --seeds counts as its runs.
	Dirs []string `json:"-"`
	// Models choose the ONNX models, for KindModel, each of which is a run: TASK=PATH, or PATH for all tasks. PATH is a
	// file, or a folder of them; that for all tasks has a folder for each task by its name.
	Models []string `json:"-"`
	// External describes the programs, for KindExternal: each is a run. Files are what they play with, such as their
	// models, which are hashed.
	External *arena.External `json:"-"`
	Files    []string        `json:"-"`
}

// settable are the beginnings of the keys in Policy.Set.
var settable = []string{"eval.rollout.", "eval.hold.", "eval.index.", "eval.hindsight="}

// Validate returns a *fault.Mistake for the first fault.
func (p *Policy) Validate() error {
	if err := p.described(); err != nil {
		return err
	}
	switch {
	case p.Kind == KindCheckpoint && len(p.Dirs) == 0:
		return fault.Mistakef("want the folder of a run, of its seeds, or of one for each task")
	case p.Kind == KindModel && len(p.Models) == 0:
		return fault.Mistakef("want the file of a model, or a folder of models for each task")
	case p.Kind == KindExternal && p.External == nil:
		return fault.Mistakef("want a program that plays over the bridge")
	case p.Kind == KindExternal:
		if err := p.External.Validate(); err != nil {
			return &fault.Mistake{Err: err}
		}
	}
	return nil
}

// described is Validate for what a row says of its policy, which is not what it is played with.
func (p *Policy) described() error {
	if p.Name == "" || len(p.Name) > 80 ||
		strings.ContainsFunc(p.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.ContainsAny(p.Name, `/\`) {
		return fault.Mistakef("name: got %q, want 1 to 80 printable characters without / and \\", p.Name)
	}
	for _, s := range p.Set {
		if !slices.ContainsFunc(settable, func(key string) bool { return strings.HasPrefix(s, key) }) {
			return fault.Mistakef("set %s: a policy may change %s alone, not what it is judged on", s,
				strings.Join(settable, "KEY, "))
		}
	}
	switch p.Kind {
	case KindRule:
		if len(p.Rules) == 0 {
			return fault.Mistakef("name a policy, as %s, best or random", policyname.AtSlots("sjf"))
		}
	case KindCheckpoint, KindModel, KindExternal:
		if len(p.Rules)+len(p.Set) > 0 {
			return fault.Mistakef("a policy of kind %s has no rules and no keys of eval", p.Kind)
		}
	default:
		return fault.Mistakef("kind: got %q, want %s, %s, %s or %s", p.Kind, KindRule, KindCheckpoint, KindModel,
			KindExternal)
	}
	return nil
}

// cutTask cuts TASK=VALUE apart. An order that is written out has signs = of its own.
func cutTask(entry string) (task, value string, ok bool) {
	if policyname.IsWritten(entry) {
		return "", entry, false
	}
	return strings.Cut(entry, "=")
}

// RowName returns the name that a row has by default, from an entry of Policy.Rules.
func RowName(rule string) string {
	_, name, ok := cutTask(rule)
	if !ok {
		name = rule
	}
	if n := policyname.Of(name); strings.ContainsAny(n.Short(), `/\`) && policyname.IsWritten(name) {
		return n.Digest()
	}
	return policyname.Short(name)
}

// chosen returns what the last of list that fits the task says; own is whether it names the task or a pattern.
func chosen(list []string, task string) (value string, own bool) {
	for _, entry := range list {
		pattern, v, ok := cutTask(entry)
		if !ok {
			value, own = entry, false
			continue
		}
		if hit, err := path.Match(pattern, task); err == nil && hit {
			value, own = v, true
		}
	}
	return value, own
}

// rule returns the name of the rule that plays t, "" if there is none for it: cfg's environment does not have it.
func (p *Policy) rule(v *Version, t *Task, cfg *config.Config) (string, error) {
	name, own := chosen(p.Rules, t.Name)
	switch name {
	case "":
		return "", nil
	case "random":
		return Random, nil
	case "best":
		r, ok := v.Reference(t)
		if !ok {
			return "", fault.Mistakef("task %s: its best rule is not recorded; name one", t.Name)
		}
		return r.Rule, nil
	}
	written := policyname.IsWritten(name)
	if !own && name != Random && !written && !t.has(name) {
		return "", nil
	}
	if _, err := cfg.Rival(name); err == nil {
		return name, nil
	} else if own || written && cfg.Simulated() {
		return "", &fault.Mistake{Err: err}
	}
	return "", nil
}

// has reports whether a rule named for all tasks plays this one: it acts through the actions, or it is one of the
// task's rules. A search plays where the rule does that it begins with.
func (t *Task) has(rule string) bool {
	n := policyname.Of(rule)
	return n.Kind == policyname.Rule || slices.Contains(t.Rules, n.Plain().String())
}

// dirs returns the run directories that play t, one for each run; none if there are none for it.
func (p *Policy) dirs(t *Task, only bool) ([]string, error) {
	dir, own := chosen(p.Dirs, t.Name)
	if dir == "" {
		return nil, nil
	}
	if !own {
		sub := filepath.Join(dir, t.Name)
		switch _, err := os.Stat(sub); {
		case err == nil:
			dir = sub
		case errors.Is(err, fs.ErrNotExist) && only && isRun(dir):
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		default:
			return nil, &fault.Mistake{Err: err}
		}
	}
	return run.RunsOf(dir)
}

// files returns the models that play t, one for each run; none if there are none for it.
func (p *Policy) files(t *Task, only bool) ([]string, error) {
	var own, plain []string
	for _, entry := range p.Models {
		pattern, name, ok := strings.Cut(entry, "=")
		if !ok {
			name = entry
		} else if hit, err := path.Match(pattern, t.Name); err != nil || !hit {
			continue
		}
		i, err := os.Stat(name)
		if err != nil {
			return nil, fault.Mistakef("model %s: %v", name, ordinary.Reason(err))
		}
		switch {
		case !i.IsDir() && !ok && !only:
			return nil, fault.Mistakef("model %s: say which task it plays, as TASK=%s", name, name)
		case !i.IsDir() && ok:
			own = append(own, name)
		case !i.IsDir():
			plain = append(plain, name)
		case ok:
			more, err := modelsIn(name)
			if err == nil && more == nil {
				err = fault.Mistakef("%s holds no models: want *.onnx", name)
			}
			if err != nil {
				return nil, err
			}
			own = append(own, more...)
		default:
			more, err := modelsIn(filepath.Join(name, t.Name))
			if more == nil && err == nil && only {
				more, err = modelsIn(name)
			}
			if err != nil {
				return nil, err
			}
			plain = append(plain, more...)
		}
	}
	if own != nil {
		return own, nil
	}
	return plain, nil
}

// modelsIn returns the models in a folder in the order of their names, none if there is no such folder.
func modelsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	var all []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".onnx") {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all, nil
}

// isRun reports whether dir is a run, a folder of seeds or a checkpoint.
func isRun(dir string) bool {
	for _, name := range []string{"config.yaml", "manifest.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
