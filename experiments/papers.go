package experiments

import (
	"context"
	"strings"

	"clustergym/experiments/study"
	"clustergym/internal/nearest"
)

// Papers are the studies that reproduce a paper, in the order of gymctl experiment list.
func Papers() []study.Study {
	return []study.Study{worlStudy(), topdrlStudy(), dallyStudy(), metaStudy()}
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
		return study.Study{}, mistake("experiment %q is unknown; did you mean %s?", name, near)
	}
	return study.Study{}, mistake("experiment %q is unknown, want one of %s", name, strings.Join(names, ", "))
}

// RunPaper computes what is not kept yet of the study called name, and reports.
func RunPaper(ctx context.Context, name string, opt PaperOptions) (*study.Report, error) {
	s, err := FindPaper(name)
	if err != nil {
		return nil, err
	}
	return RunStudy(ctx, s, opt)
}
