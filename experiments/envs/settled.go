package envs

import (
	"fmt"
	"reflect"
	"slices"

	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/bridge/wire"
	"clustergym/env/control"
	"clustergym/env/dagplace"
	"clustergym/env/workerplace"
	"clustergym/experiments/workload"
)

// settledEnv is an environment that needs nothing but settings of its own: no recorded workload, no cluster of a file.
type settledEnv struct {
	id     string
	args   func() configs.Validator // the defaults, as a pointer to a plain struct
	open   func(args configs.Validator) (env.Env, error)
	page   func(args configs.Validator, s env.Spec) string
	words  func() map[string][2]string                      // of each argument: what it can be, and what it means
	memory func(args configs.Validator, s env.Spec) float64 // bytes of one environment, roughly
}

// settledEnvs are those that are registered, sorted.
var settledEnvs = []settledEnv{
	{
		id:    dagplace.ID,
		args:  func() configs.Validator { c := dagplace.DefaultConfig(); return &c },
		open:  func(a configs.Validator) (env.Env, error) { return dagplace.New(*a.(*dagplace.Config)) },
		page:  func(a configs.Validator, s env.Spec) string { return dagplace.Page(*a.(*dagplace.Config), s) },
		words: dagplace.ArgWords,
		memory: func(a configs.Validator, s env.Spec) float64 {
			c := a.(*dagplace.Config)
			n, m := float64(c.Tasks), float64(c.GPUs)
			return 8*n*m + 16*m*m + 200*n*max(1, min(c.Degree, n)) + 16*float64(s.ObsLen())
		},
	},
	{
		id:    workerplace.ID,
		args:  func() configs.Validator { c := workerplace.DefaultConfig(); return &c },
		open:  func(a configs.Validator) (env.Env, error) { return workerplace.New(*a.(*workerplace.Config)) },
		page:  func(a configs.Validator, s env.Spec) string { return workerplace.Page(*a.(*workerplace.Config), s) },
		words: workerplace.ArgWords,
		memory: func(a configs.Validator, s env.Spec) float64 {
			c := a.(*workerplace.Config)
			return float64(c.Jobs)*(200+4*float64(c.Servers)) + 100*float64(c.Servers) + 20*float64(s.ObsLen())
		},
	},
}

// settledIDs are their names.
func SettledIDs() []string {
	var ids []string
	for _, e := range settledEnvs {
		ids = append(ids, e.id)
	}
	return ids
}

// settled is the environment called id, nil where there is none.
func settled(id string) *settledEnv {
	for k := range settledEnvs {
		if settledEnvs[k].id == id {
			return &settledEnvs[k]
		}
	}
	return nil
}

// plainIDs are the environments that are trained and judged by their returns alone.
func plainIDs() []string { return slices.Concat(control.IDs(), SettledIDs(), stagedIDs()) }

// newPlainEnv makes one of them, with default settings.
func NewPlainEnv(id string) (env.Env, error) {
	make, err := PlainMaker(id, nil)
	if err != nil {
		return nil, err
	}
	return make()
}

// plainMaker makes any number of them, with arguments as gymctl envs --set takes them.
func PlainMaker(id string, sets []string) (func() (env.Env, error), error) {
	var args configs.Validator
	s, st := settled(id), Staged(id)
	switch {
	case s != nil:
		args = s.args()
	case st != nil:
		args = st
	case !slices.Contains(control.IDs(), id):
		return nil, unknownEnv(id)
	case len(sets) > 0:
		return nil, workload.Mistake("env.args: %s has no arguments, got %q", id, sets[0])
	default:
		return func() (env.Env, error) { return control.New(id) }, nil
	}
	for _, set := range sets {
		if err := configs.Set(args, set); err != nil {
			return nil, workload.Mistake("env.args: %q: %w", set, err)
		}
	}
	if err := args.Validate(); err != nil {
		return nil, &workload.InputError{Err: fmt.Errorf("env.args: %w", err)}
	}
	if s != nil {
		return func() (env.Env, error) { return s.open(args) }, nil
	}
	return stagedMaker(st)
}

// describe is DescribeEnv.
func (s *settledEnv) describe(set func(args configs.Validator) error) (*Info, error) {
	args := s.args()
	if set != nil {
		if err := set(args); err != nil {
			return nil, err
		}
	}
	if err := args.Validate(); err != nil {
		return nil, &workload.InputError{Err: err}
	}
	e, err := s.open(args)
	if err != nil {
		return nil, &workload.InputError{Err: err}
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	return &Info{Spec: e.Spec(), Page: s.page(args, e.Spec()) + s.arguments(args), Kwargs: kwargsOf(args, s.words())}, nil
}

// arguments is what a page says of them.
func (s *settledEnv) arguments(args configs.Validator) string {
	text := "\n## Arguments\n\n| key | here | values | meaning |\n|---|---|---|---|\n"
	for _, k := range kwargsOf(args, s.words()) {
		text += fmt.Sprintf("| %s | %v | %s | %s |\n", k.Name, k.Default, k.Want, k.Doc)
	}
	return text
}

// make is Registry.Make.
func (s *settledEnv) make(r *Registry, kwargs wire.Map, n int) (*Made, error) {
	args := s.args()
	if err := graftArgs(kwargs, args); err != nil {
		return nil, err
	}
	text, err := configs.Encode(args)
	if err != nil {
		return nil, err
	}
	m := &Made{SHA: ScenarioSHA(s.id, string(text), nil), Meta: map[string]any{}}
	for range n {
		e, err := s.open(args)
		if err != nil {
			return nil, badKwargs(err)
		}
		if size := float64(n) * s.memory(args, e.Spec()); m.Envs == nil && size > float64(r.cfg.OpenBytes) {
			return nil, &wire.Error{Code: wire.TooLarge, Msg: "environments of this size",
				Got:  fmt.Sprintf("%d that take about %.0f MiB", n, size/(1<<20)),
				Want: fmt.Sprintf("at most %d MiB; fewer, or smaller ones", r.cfg.OpenBytes>>20)}
		}
		m.Envs = append(m.Envs, e)
	}
	return m, nil
}

// graftArgs puts arguments as a client sends them over args. What is wrong is a *wire.Error of code bad_kwargs.
func graftArgs(kwargs wire.Map, args configs.Validator) error {
	tree := map[string]any{}
	for _, p := range kwargs {
		if err := graft(tree, "", p.Key, p.Value); err != nil {
			return badKwargs(err)
		}
	}
	text, err := configs.Encode(tree)
	if err != nil {
		return badKwargs(err)
	}
	return badKwargs(configs.DecodeBytes("", text, args))
}

// kwargsOf describes arguments with their values as defaults, in order of declaration.
func kwargsOf(args any, words map[string][2]string) []Kwarg {
	all := []Kwarg{}
	walkKeys(reflect.ValueOf(args).Elem(), "", func(path string, v reflect.Value) {
		all = append(all, kwargOf(path, v, words))
	})
	return all
}

// isPlain says whether an environment is one of plainIDs.
func IsPlain(id string) bool { return slices.Contains(plainIDs(), id) }

// HasArguments says whether an environment can be asked for with arguments.
func HasArguments(id string) bool { return !slices.Contains(control.IDs(), id) }
