package estimates

import (
	"context"
	"fmt"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// log is a workload on its cluster.
type log struct {
	jobs      []traces.Job // in order of submit, from 0 on; all fit the cluster
	as        []traces.Job // the same with submit times as recorded or generated
	on        cluster.Spec
	requested bool // every job has a requested time
}

// given returns the logs that p's folder has, or that are generated, and the names of the others.
func (s *settings) given(p study.Plan) (logs []logSettings, absent []string, err error) {
	return workload.Given(p.Data, s.Logs, func(w *logSettings) (string, *string) { return w.Name, &w.File })
}

// fewest is the number of jobs that a log must have, so that blocks and windows are not empty.
const fewest = 400

// generatorSeed is the seed of the generated logs.
const generatorSeed = 2

// load reads or generates a log.
func (o *logSettings) load(ctx context.Context) (*log, error) {
	c := workload.DefaultTraceConfig()
	if c.File, c.Jobs, c.Seed = o.File, o.Jobs, generatorSeed; o.File == "" {
		c.Synth = o.Synth
	}
	t, err := workload.OpenTrace(ctx, c)
	if err != nil {
		return nil, err
	}
	// Read as it stands: workload.LoadTrace would put the run time in the place of a requested time that is not known.
	jobs, err := traces.ReadAll(t)
	if e := t.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, err
	}
	l := &log{}
	if l.on, _, err = cluster.Parse(o.Cluster); err != nil {
		return nil, err
	}
	machine, err := cluster.New(l.on)
	if err != nil {
		return nil, err
	}
	gpus := machine.GPUs()
	jobs, _, _ = traces.Filter(jobs, gpus)
	// A log has requested times if nearly all of its jobs do; the few others are left out.
	with := 0
	for i := range jobs {
		if jobs[i].Estimate > 0 {
			with++
		}
	}
	l.requested = with > 0 && with >= len(jobs)*99/100
	for i := range jobs {
		switch {
		case !l.requested:
			jobs[i].Estimate = 0
		case jobs[i].Estimate <= 0:
			continue
		}
		l.as = append(l.as, jobs[i])
	}
	if len(l.as) < fewest {
		return nil, fault.Mistakef("log %s: %d of its jobs fit %s, want %d or more", o.Name, len(l.as), o.Cluster, fewest)
	}
	for i, first := 0, l.as[0].Submit; i < len(l.as); i++ {
		l.as[i].Submit -= first
	}
	l.jobs, err = traces.ScaleSubmit(nil, l.as, traces.LoadFactor(l.as, gpus, o.Load))
	return l, err
}

// digest identifies what is in the log's file, or what is generated.
func (o *logSettings) digest(ctx context.Context) (string, error) {
	if o.File == "" {
		return fmt.Sprintf("%+v, seed %d", o.Synth, generatorSeed), nil
	}
	return workload.HashFile(ctx, nil, o.File)
}
