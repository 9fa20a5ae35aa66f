package rlscheduler

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/lab/workload"
	peer "clustergym/peer/rlscheduler"
	"clustergym/traces/synth"
)

// window is one window of a set.
type window struct {
	name  string
	jobs  []peer.Job
	apart bool // of a choice of windows that do not overlap
	// pool is what futures are drawn from: the training part without the window's own jobs.
	pool [][]peer.Job
}

// starts are where the ten windows of the paper's tables begin in a log.
var starts = []int{1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085}

// apart are those of starts that do not overlap: in order, each that begins after the last one's end.
func apart() []int {
	sorted := slices.Sorted(slices.Values(starts))
	var chosen []int
	for _, at := range sorted {
		if len(chosen) == 0 || at >= chosen[len(chosen)-1]+length {
			chosen = append(chosen, at)
		}
	}
	return chosen
}

// Sets of windows.
const (
	published = "published"  // the ten windows of the paper's tables, of recorded logs
	heldOut   = "held out"   // what follows the training part
	fresh     = "fresh logs" // windows of other logs
)

// sets returns the sets of windows that are played on a log. files are recorded fresh logs.
func (o *logSettings) sets(files []string) []string {
	switch {
	case o.File == "":
		return []string{heldOut, fresh}
	case len(files) == 0:
		return []string{published, heldOut}
	}
	return []string{published, heldOut, fresh}
}

// given returns the logs that p's folder has, or that are generated, and the names of the others.
func (s *settings) given(p study.Plan) (logs []logSettings, absent []string, err error) {
	return workload.Given(p.Data, s.Logs, func(o *logSettings) (string, *string) { return o.Name, &o.File })
}

// generatorSeed is the seed of the generated log; the logs of fresh windows have the seeds after freshSeed.
const generatorSeed, freshSeed = 1, 1000

// load reads or generates a log.
func (o *logSettings) load(ctx context.Context) ([]peer.Job, error) {
	if o.File == "" {
		return generated(o.Synth, generatorSeed)
	}
	return recorded(ctx, o.Name, o.File, held)
}

// recorded reads a log that has at least so many jobs.
func recorded(ctx context.Context, name, file string, least int) ([]peer.Job, error) {
	c := workload.DefaultTraceConfig()
	c.File = file
	log, _, err := workload.LoadTraceContext(ctx, c)
	if err != nil {
		return nil, err
	}
	jobs := peer.Jobs(log, procs)
	if len(jobs) < least {
		return nil, fault.Mistakef("log %s: %d of its jobs fit %d processors, want %d or more", name, len(jobs), procs, least)
	}
	return jobs, nil
}

func generated(c synth.Config, seed uint64) ([]peer.Job, error) {
	log, err := synth.Generate(c, seed)
	if err != nil {
		return nil, err
	}
	return peer.Jobs(log, procs), nil
}

// freshFiles returns the logs in the folder fresh of p's data.
func freshFiles(p study.Plan) ([]string, error) {
	if p.Data == "" {
		return nil, nil
	}
	var all []string
	for _, pattern := range []string{"*.swf", "*.swf.gz"} {
		files, err := filepath.Glob(filepath.Join(p.Data, "swf", "fresh", pattern))
		if err != nil {
			return nil, fault.Mistakef("%s: %v", fault.Key("data"), err)
		}
		all = append(all, files...)
	}
	slices.Sort(all)
	return all, nil
}

// windows returns the windows of a set of log o, whose jobs are jobs. A generated log's fresh windows are generated
// alike, with other seeds; those of a recorded log are cut from files.
func (s *settings) windows(ctx context.Context, o *logSettings, jobs []peer.Job, set string,
	files []string) (all []window, err error) {
	whole := [][]peer.Job{jobs[:training]}
	switch set {
	case published:
		disjoint := apart()
		for _, at := range starts {
			w := window{name: fmt.Sprint(at), jobs: jobs[at : at+length], apart: slices.Contains(disjoint, at)}
			w.pool = [][]peer.Job{jobs[:min(at, training)]}
			if at+length < training {
				w.pool = append(w.pool, jobs[at+length:training])
			}
			all = append(all, w)
		}
	case heldOut:
		for at := training; at+length <= held; at += length {
			all = append(all, window{name: fmt.Sprint(at), jobs: jobs[at : at+length], apart: true, pool: whole})
		}
	case fresh:
		for _, f := range files {
			if o.File == "" {
				break
			}
			log, err := recorded(ctx, filepath.Base(f), f, length)
			if err != nil {
				return nil, err
			}
			for at := 0; at+length <= len(log); at += length {
				all = append(all,
					window{name: fmt.Sprintf("%s %d", filepath.Base(f), at), jobs: log[at : at+length], apart: true, pool: whole})
			}
		}
		if o.File != "" {
			return all, nil
		}
		c := o.Synth
		c.Jobs = length
		for i := range s.Fresh {
			log, err := generated(c, freshSeed+uint64(i))
			if err != nil {
				return nil, err
			}
			all = append(all, window{name: fmt.Sprintf("log %d", i), jobs: log, apart: true, pool: whole})
		}
	}
	return all, nil
}

// digest identifies what is in the files of a log and of fresh logs, or what is generated.
func digest(ctx context.Context, o *logSettings, files []string) (string, error) {
	if o.File == "" {
		return fmt.Sprintf("%+v, seeds %d, %d", o.Synth, generatorSeed, freshSeed), nil
	}
	var all []string
	for _, f := range append([]string{o.File}, files...) {
		h, err := workload.HashFile(ctx, nil, f)
		if err != nil {
			return "", err
		}
		all = append(all, h)
	}
	return strings.Join(all, " "), nil
}
