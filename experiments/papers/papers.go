package papers

import (
	"context"
	"strings"

	"clustergym/experiments/dally"
	"clustergym/experiments/ddppo"
	"clustergym/experiments/estimates"
	"clustergym/experiments/lookahead"
	"clustergym/experiments/lwf"
	"clustergym/experiments/metascheduler"
	"clustergym/experiments/rlscheduler"
	"clustergym/experiments/rltune"
	"clustergym/experiments/run"
	"clustergym/experiments/study"
	"clustergym/experiments/topdrl"
	"clustergym/experiments/workload"
	"clustergym/experiments/worlrtgs"
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
		return study.Study{}, workload.Mistake("experiment %q is unknown; did you mean %s?", name, near)
	}
	return study.Study{}, workload.Mistake("experiment %q is unknown, want one of %s", name, strings.Join(names, ", "))
}

// Run computes the cells of the study called name that opt.Dir does not keep yet, and returns the report.
func Run(ctx context.Context, name string, opt run.PaperOptions) (*study.Report, error) {
	s, err := find(name)
	if err != nil {
		return nil, err
	}
	return run.RunStudy(ctx, s, opt)
}
