package papers

import (
	"context"
	"os"
	"path/filepath"
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
	"clustergym/experiments/study"
	"clustergym/experiments/topdrl"
	"clustergym/experiments/worlrtgs"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/ordinary"
	"clustergym/lab/run"
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

// Run computes the cells of the study called name that opt.Dir does not keep yet, and returns the report. opt.Dir "" is
// Dir's.
func Run(ctx context.Context, name string, opt study.Options) (*study.Report, error) {
	s, err := find(name)
	if err != nil {
		return nil, err
	}
	if opt.Plan.Workers < 1 && opt.Queue == nil {
		return nil, fault.Mistakef("workers: got %d, want 1 or more", opt.Plan.Workers)
	}
	if opt.Plan.Seeds < 0 || opt.Plan.Seeds > run.MaxSeeds {
		return nil, fault.Mistakef("seeds: got %d, want 1 to %d, or 0 for the study's own number", opt.Plan.Seeds,
			run.MaxSeeds)
	}
	if d := opt.Plan.Data; d != "" {
		if i, err := os.Stat(d); err != nil {
			return nil, fault.Mistakef("data folder %s: %v", d, ordinary.Reason(err))
		} else if !i.IsDir() {
			return nil, fault.Mistakef("data folder %s: it is a file", d)
		}
	}
	if len(opt.Plan.Agents) > 0 && !s.PlaysAgents {
		return nil, fault.Mistakef("%s %s=%s: experiment %s plays no agents but its own", fault.Key("agent"),
			opt.Plan.Agents[0].Where, opt.Plan.Agents[0].Dir, s.Name)
	}
	if opt.Dir == "" {
		opt.Dir = Dir(s.Name, opt.Plan.Quick)
	}
	return study.Run(ctx, s, opt)
}

// Dir returns the default folder of an experiment. It is always the same, so that the same command continues it.
func Dir(name string, quick bool) string {
	if quick {
		name += "-quick"
	}
	return filepath.Join("runs", name)
}

// Settings returns the settings of the study called name, in plan's form and after its changes.
func Settings(name string, plan study.Plan) (*study.Shown, error) {
	s, err := find(name)
	if err != nil {
		return nil, err
	}
	return study.ShowSettings(s, plan)
}

// ProgressOf returns how the experiment in a folder stands, which may be going on.
func ProgressOf(dir string) (*study.Progress, error) {
	name := study.NameIn(dir)
	if name == "" {
		return nil, fault.Mistakef("%s holds no experiment that says what it runs", dir)
	}
	s, err := find(name)
	if err != nil {
		return nil, err
	}
	return study.ProgressOf(s, dir)
}
