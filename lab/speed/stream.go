package speed

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"clustergym/lab/simulate"
	"clustergym/lab/workload"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/swf"
	"clustergym/traces/synth"
)

// The long row has as many jobs as the largest logs of this kind, on 256 processors at a load of 0.87. The target is
// three minutes and 2 GiB.
const (
	longJobs  = 11_500_000
	longProcs = 256
	longMark  = longJobs / 180.
)

// streaming measures the simulation of a log that is read from a compressed file meanwhile, under FCFS with EASY. There
// is no calibration before it, because its memory would be counted.
func (b *bench) streaming(ctx context.Context) error {
	dir, err := b.hooks.Dir()
	if err != nil {
		return err
	}
	gen := synth.DefaultConfig()
	// At the profile's own rate the jobs would span more time than a time.Duration can hold.
	gen.Profile, gen.Procs, gen.Jobs, gen.Rate, gen.Work = "hpc", longProcs, longJobs, 1.25, 0.8
	if b.cfg.Quick {
		gen.Jobs = 20_000
	}
	path := filepath.Join(dir, "long.swf.zst")
	b.say(fmt.Sprintf("making up %d jobs in %s", gen.Jobs, path))
	if err := writeLog(ctx, path, gen); err != nil {
		return err
	}
	cfg := simulate.DefaultConfig()
	cfg.Trace.File, cfg.Trace.Format, cfg.Stream = path, workload.FormatSWF, "on"
	cfg.Cluster, cfg.Policies, cfg.Policy.Estimates.Mode = fmt.Sprintf("swf-%d",
		longProcs), []string{"fifo+strict+easy"}, sim.EstimateTrace
	row := Row{
		Group: "simulator", What: "HPC jobs, load 0.87, read from a file meanwhile", Jobs: gen.Jobs, Cluster: cfg.Cluster,
		Policy: cfg.Policies[0],
		Unit:   "jobs/s", Mark: longMark,
	}
	b.say(row.name())
	r, err := b.round(ctx, time.Nanosecond, nil, func(ctx context.Context) (int, error) {
		report, err := simulate.Run(ctx, cfg, simulate.Hooks{})
		if err != nil {
			return 0, err
		}
		return report.Runs[0].Trace.Jobs, nil
	})
	if err != nil {
		return err
	}
	row.PeakMiB = peakMemory()
	b.prepare()
	row.fill(r, b.calibrate(), b.calibrate())
	b.report.Rows = append(b.report.Rows, row)
	return nil
}

// writeLog writes a generated log, compressed according to its name.
func writeLog(ctx context.Context, path string, cfg synth.Config) error {
	jobs, err := synth.NewHPC(cfg, 1)
	if err != nil {
		return err
	}
	o, err := workload.CreateFile(path)
	if err != nil {
		return err
	}
	defer o.Discard()
	if _, err := swf.Write(o, untilDone{ctx, jobs}, nil); err != nil {
		return err
	}
	return o.Commit()
}

// untilDone is a stream that fails once ctx is done.
type untilDone struct {
	ctx  context.Context
	jobs traces.Stream
}

// Next implements traces.Stream.
func (s untilDone) Next(j *traces.Job) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	return s.jobs.Next(j)
}
