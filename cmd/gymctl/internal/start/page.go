package start

import (
	"path/filepath"

	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/run"
	"clustergym/pages/runpage"
)

// pageOf is the page of one training.
func pageOf(cfg config.Config, r *run.TrainResult, opt *run.TrainOptions) *runpage.Page {
	p := &runpage.Page{
		Config: cfg, Runs: []string{opt.RunDir},
		Evaluated: arena.EvalOptions{Checkpoints: []string{r.Checkpoint}, Workers: opt.Workers, Scenario: opt.Scenario},
	}
	if r.Eval != nil {
		p.Sheets, p.Results = r.Eval.Sheets(), []runpage.Result{{Comparison: r.Eval}}
	}
	return p
}

// pageOfSeeds is the page of several.
func pageOfSeeds(cfg config.Config, r *run.SeedsReport, opt *run.TrainOptions) *runpage.Page {
	p := &runpage.Page{Config: cfg, Sheets: r.Sheets(),
		Evaluated: arena.EvalOptions{Workers: opt.Workers, Scenario: opt.Scenario}}
	for i := range r.Runs {
		s := &r.Runs[i]
		p.Runs = append(p.Runs, run.SeedDir(opt.RunDir, s.Seed))
		if s.Eval != nil {
			p.Results = append(p.Results,
				runpage.Result{Name: filepath.Base(run.SeedDir(opt.RunDir, s.Seed)), Checkpoint: s.Checkpoint, Comparison: s.Eval})
		}
	}
	return p
}
