package operate

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/lab/workload"
	"clustergym/traces"
)

// PastFlags say what a cluster has done before, from which its run times are forecast.
type PastFlags struct{ File, End string }

func (p *PastFlags) add(f *pflag.FlagSet) {
	f.StringVar(&p.File, "history", "", "`FILE` of what the cluster has done before, as gymctl trace get writes it")
	f.StringVar(&p.End, "history-end", "",
		"`TIME` at which the last job of the history has ended (default what the file says, else now)")
}

// read returns the jobs with GPUs, in order of submit; nil without a file.
func (p *PastFlags) read(ctx context.Context) ([]traces.Job, error) {
	if p.File == "" {
		return nil, nil
	}
	t := workload.DefaultTraceConfig()
	t.File = p.File
	jobs, _, err := workload.LoadTraceContext(ctx, t)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(jobs, func(j traces.Job) bool { return j.GPUs < 1 }), nil
}

// Epoch returns when the clock of the history showed 0; zero without a history. Files of sacct with times in seconds
// since 1970, as gymctl trace get slurm writes them, say when their last job has ended; of others --history-end does,
// and without it they end now.
func (p *PastFlags) Epoch(jobs []traces.Job, now time.Time) (time.Time, error) {
	if len(jobs) == 0 {
		return time.Time{}, nil
	}
	last := time.Duration(0)
	for i := range jobs {
		last = max(last, jobs[i].Submit+jobs[i].Work)
	}
	end, found := options.LastEnd(p.File, nil)
	if !found {
		end = now
	}
	if p.End != "" {
		var err error
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
			if end, err = time.ParseInLocation(layout, p.End, time.Local); err == nil {
				break
			}
		}
		if err != nil {
			return time.Time{},
				fault.Mistakef("--history-end: got %q, want a time such as 2026-01-31T15:04 or 2026-01-31T15:04:05Z", p.End)
		}
	}
	if end.After(now) {
		return time.Time{},
			fault.Mistakef(
				"the history ends at %s, which is still to come; want --history-end TIME, when its last job has ended",
				end.Format(time.RFC3339))
	}
	return end.Add(-last), nil
}
