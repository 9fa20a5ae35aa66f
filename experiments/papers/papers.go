package papers

import (
	"context"
	"strings"

	"clustergym/experiments/dally"
	"clustergym/experiments/metascheduler"
	"clustergym/experiments/run"
	"clustergym/experiments/study"
	"clustergym/experiments/topdrl"
	"clustergym/experiments/workload"
	"clustergym/experiments/worlrtgs"
	"clustergym/internal/nearest"
)

// Papers are the studies that reproduce a paper, in the order of gymctl experiment list.
func Papers() []study.Study {
	return []study.Study{worlrtgs.Study(), topdrl.Study(), dally.Study(), metascheduler.Study()}
}

// FindPaper is the study called name.
func FindPaper(name string) (study.Study, error) {
	var names []string
	for _, s := range Papers() {
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

// RunPaper computes what is not kept yet of the study called name, and reports.
func RunPaper(ctx context.Context, name string, opt run.PaperOptions) (*study.Report, error) {
	s, err := FindPaper(name)
	if err != nil {
		return nil, err
	}
	return run.RunStudy(ctx, s, opt)
}
