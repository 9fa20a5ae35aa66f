package workload

import (
	"context"
	"slices"
	"time"

	"clustergym/internal/fault"
	"clustergym/traces"
	"clustergym/traces/tiresias"
)

// ServiceOf returns the GPU-times of jobs, sorted: run time × GPUs, with shares of a GPU counted as such.
func ServiceOf(jobs []traces.Job) []time.Duration {
	times := make([]time.Duration, 0, len(jobs))
	for i := range jobs {
		times = append(times, gpuTime(float64(jobs[i].Work)*float64(jobs[i].Milli())/1000))
	}
	slices.Sort(times)
	return times
}

// gpuTime returns ns nanoseconds of GPU-time, at most traces.MaxTime: a job that has got so much of it is not told
// apart from one that has got more.
func gpuTime(ns float64) time.Duration {
	if ns >= traces.MaxTime {
		return traces.MaxTime
	}
	return time.Duration(ns)
}

// ReadService reads a sample of GPU-times from a file and sorts it. It returns nil if name is "" or "workload", which
// name no file.
func ReadService(name string) ([]time.Duration, error) {
	if name == "" || name == "workload" {
		return nil, nil
	}
	path, err := Located(name)
	if err != nil {
		return nil, err
	}
	f, err := traces.OrdinaryFiles().Open(context.Background(), path)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	defer f.Close() //nolint:errcheck // open for reading only
	seconds, err := tiresias.ReadSample(f, path)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	times := make([]time.Duration, 0, len(seconds))
	for _, s := range seconds {
		times = append(times, gpuTime(s*1e9))
	}
	slices.Sort(times)
	return times, nil
}
