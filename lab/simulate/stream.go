package simulate

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"clustergym/internal/fault"
	"clustergym/lab/predictors"
	"clustergym/lab/workload"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// streamBytes is the size from which trace files are streamed by default. A compressed file of this size has some
// millions of jobs.
const streamBytes = 64 << 20

// streams reports whether the workload is read during the simulation.
func (c *Config) streams() bool {
	switch {
	case c.Stream == "off" || c.Trace.File == "" || c.Trace.Sort:
		return false
	case c.Stream == "on":
		return true
	}
	path, err := workload.Located(c.Trace.File)
	if err != nil {
		return false // opening the trace will report the error
	}
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Size() >= streamBytes
}

// streamed is a trace that is read during the simulation. Like workload.LoadTrace it gives jobs of SWF logs without a
// requested time their run time as estimate.
type streamed struct {
	*workload.Trace
	ahead   traces.Job // read by firstSubmit
	pending bool       // ahead is still to be returned
	assumed int        // estimates set to the run time
	hours   float64    // GPU-hours of all jobs
	model   *predictors.Model
	known   int // jobs to which model has been fitted
}

func openStreamed(ctx context.Context, cfg workload.TraceConfig) (*streamed, error) {
	t, err := workload.OpenTrace(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &streamed{Trace: t}, nil
}

// Next implements traces.Stream.
func (s *streamed) Next(j *traces.Job) error {
	if s.pending {
		*j, s.pending = s.ahead, false
		return nil
	}
	if err := s.Trace.Next(j); err != nil {
		return err
	}
	s.hours += j.GPUHours()
	if s.model != nil && s.model.Knows(j) {
		s.known++
	}
	if j.Estimate == 0 && s.Info().Format == workload.FormatSWF {
		j.Estimate, j.Assumed = j.Work, true
		s.assumed++
	}
	return nil
}

// firstSubmit returns when the first job of s is submitted. The next call of s.Next returns that job again.
func firstSubmit(s traces.Stream) (time.Duration, error) {
	switch s := s.(type) {
	case *traces.Slice:
		return s.Jobs[0].Submit, nil
	case *streamed:
		if err := s.Next(&s.ahead); errors.Is(err, io.EOF) {
			return 0, nil
		} else if err != nil {
			return 0, err
		}
		s.pending = true
		return s.ahead.Submit, nil
	}
	return 0, nil
}

// drain reads the rest of s.
func drain(s traces.Stream) error {
	for {
		var j traces.Job
		if err := s.Next(&j); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// count reads the rest of a streamed trace and takes its counts into the report.
func (r *simulation) count(file *streamed, s *sim.Simulator) error {
	if err := drain(file); err != nil { // jobs after the horizon count too
		return err
	}
	first := len(r.report.Runs) == 0
	r.report.Info = file.Info()
	r.report.Info.Assumed = file.assumed
	r.read = r.report.Info.Jobs
	never := s.Refused()
	r.never = Refusal{count: never.Count, ids: never.IDs[:min(namedJobs, len(never.IDs))], largest: never.GPUs,
		hours: never.GPUHours, all: file.hours, why: never.Why}
	if r.read == 0 {
		return fault.Mistakef("trace %s: there are no jobs to read%s", r.report.Info.File,
			workload.AfterSkip(r.cfg.Trace.Skip))
	}
	if !first {
		return nil
	}
	r.known(file.known)
	if err := r.refuse(r.never.count == r.read); err != nil {
		return err
	}
	return r.cuts(r.read - r.never.count)
}
