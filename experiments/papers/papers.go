package papers

import (
	"context"
	"errors"
	"strings"

	"clustergym/experiments/asrpt"
	"clustergym/experiments/dally"
	"clustergym/experiments/ddppo"
	"clustergym/experiments/estimates"
	"clustergym/experiments/improper"
	"clustergym/experiments/lookahead"
	"clustergym/experiments/lwf"
	"clustergym/experiments/metascheduler"
	"clustergym/experiments/rlscheduler"
	"clustergym/experiments/rltune"
	"clustergym/experiments/run"
	"clustergym/experiments/study"
	"clustergym/experiments/topdrl"
	"clustergym/experiments/worlrtgs"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// All returns the studies: those that reproduce a paper and our own, in the order of gymctl experiment list.
func All() []study.Study {
	return []study.Study{
		worlrtgs.Study(),
		topdrl.Study(),
		dally.Study(),
		metascheduler.Study(),
		rlscheduler.Study(),
		rltune.Study(),
		lwf.Study(),
		asrpt.Study(),
		improper.Study(),
		ddppo.Study(),
		estimates.Study(),
		lookahead.Study(),
	}
}

// find returns the study called name.
func find(name string) (study.Study, error) {
	var names []string
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	if near := nearest.Name(name, names); near != "" {
		return study.Study{}, fault.Mistakef("experiment %q is unknown; did you mean %s?", name, near)
	}
	return study.Study{}, fault.Mistakef("experiment %q is unknown, want one of %s", name, strings.Join(names, ", "))
}

// Run computes the cells of the study called name that opt.Dir does not keep yet, and returns the report.
func Run(ctx context.Context, name string, opt run.PaperOptions) (*study.Report, error) {
	s, err := find(name)
	if err != nil {
		return nil, err
	}
	return run.RunStudy(ctx, s, opt)
}

// Settings returns the settings of the study called name, in plan's form and after its changes.
func Settings(name string, plan study.Plan) (*study.Shown, error) {
	s, err := find(name)
	if err != nil {
		return nil, err
	}
	shown, err := study.ShowSettings(s, plan)
	if input, ok := errors.AsType[*fault.Mistake](err); ok {
		return nil, &fault.Mistake{Err: input}
	}
	return shown, err
}

// Stands returns how the experiment in a folder stands, which may be going on.
func Stands(dir string) (*study.Standing, error) {
	name := study.NameIn(dir)
	if name == "" {
		return nil, fault.Mistakef("%s holds no experiment that says what it runs", dir)
	}
	s, err := find(name)
	if err != nil {
		return nil, err
	}
	standing, err := study.Stands(s, dir)
	if input, ok := errors.AsType[*fault.Mistake](err); ok {
		return nil, &fault.Mistake{Err: input}
	}
	return standing, err
}
