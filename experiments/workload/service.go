package workload

import (
	"slices"
	"time"

	"clustergym/traces"
	"clustergym/traces/tiresias"
)

// ServiceOf returns the GPU-times of jobs, sorted: run time × GPUs, with shares of a GPU counted as such.
func ServiceOf(jobs []traces.Job) []time.Duration {
	times := make([]time.Duration, 0, len(jobs))
	for i := range jobs {
		times = append(times, time.Duration(float64(jobs[i].Work)*float64(jobs[i].Milli())/1000))
	}
	slices.Sort(times)
	return times
}

// ReadService reads a sample of GPU-times from a file and sorts it. It returns nil if name is "" or "workload", which name
// no file.
func ReadService(name string) ([]time.Duration, error) {
	if name == "" || name == "workload" {
		return nil, nil
	}
	path, err := Located(name)
	if err != nil {
		return nil, err
	}
	f, err := traces.OpenFile(path)
	if err != nil {
		return nil, &InputError{err}
	}
	defer f.Close() //nolint:errcheck // open for reading only
	seconds, err := tiresias.ReadSample(f, path)
	if err != nil {
		return nil, &InputError{err}
	}
	times := make([]time.Duration, 0, len(seconds))
	for _, s := range seconds {
		times = append(times, time.Duration(s*1e9))
	}
	slices.Sort(times)
	return times, nil
}
