package envs

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"clustergym/configs"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/workload"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// The settings that can follow from the workload and the cluster.
const (
	maxGPUsKey = "max_gpus"
	windowKey  = "window"
	warmKey    = "warm"

	estimatesKey = "estimates"
	mixKey       = "trace.mix" // of the trace, not of the settings
)

// Choice is a setting that was chosen for a workload, with the reason.
type Choice struct {
	Keys   []string // "env.window"
	Values []any
	Why    string
}

// Fit loads the workload of a simulated environment and returns a copy of the settings in which the sizes that given
// does not name, as "env.window", follow from it: max_gpus is the largest gang that fits the cluster, window and warm
// give every part windows and are not larger than those of s. Estimates of the trace become those of history where jobs
// have none, and jobs without the model that the environment needs get one of its mix, which a Choice of trace.mix
// names. Faults are *fault.Mistakes.
func (d *Descriptor) Fit(ctx context.Context, s Settings, clusterName string, t workload.TraceConfig,
	given func(key string) bool) (Settings, *Workload, []Choice, error) {
	spec, err := workload.ClusterSpec(clusterName)
	if err != nil {
		return nil, nil, nil, err
	}
	spec.Literal = !d.Ongoing
	jobs, info, err := workload.LoadTraceContext(ctx, t)
	if err != nil {
		return nil, nil, nil, err
	}
	given = inEnv(given)
	if err := configs.Own(&s); err != nil {
		return nil, nil, nil, err
	}
	var choices []Choice
	choose := func(why string, keys []string, values ...any) error {
		for i, k := range keys {
			if err := configs.Set(s, fmt.Sprintf("%s=%v", k, values[i])); err != nil {
				return err
			}
			keys[i] = "env." + k
		}
		choices = append(choices, Choice{keys, values, why})
		return nil
	}
	if why := d.unknown(s, jobs, info.File); why != "" && !given(estimatesKey) {
		if err := choose(why, []string{estimatesKey}, "history"); err != nil {
			return nil, nil, nil, err
		}
	}
	if n := d.modelless(s, jobs); n > 0 && d.mix != "" && t.Mix == "" && t.Profiles == "" && !given(mixKey) {
		t.Mix = d.mix
		if jobs, info, err = workload.LoadTraceContext(ctx, t); err != nil {
			return nil, nil, nil, err
		}
		why := fmt.Sprintf("%s of %s say nothing of their models, which %s needs, so they are drawn", jobsOf(n, len(jobs)),
			info.File, d.ID)
		choices = append(choices, Choice{[]string{mixKey}, []any{t.Mix}, why})
	}
	cut, has := d.Cut(s), settingKeys(s)
	keep := sched.Kept{MaxGPUs: given(maxGPUsKey), Window: given(windowKey), Warm: given(warmKey) || !has[warmKey]}
	most := d.mostGPUs(s)
	z, err := sched.Fit(cut, spec, jobs, most, keep)
	if err != nil {
		return nil, nil, nil, &fault.Mistake{Err: err}
	}
	gpus, _ := sizeOf(&spec)
	if !keep.MaxGPUs {
		why := fmt.Sprintf("the largest gang of %s that fits the %s of %s", info.File, plain.Count(gpus, "GPU", "GPUs"),
			spec.Name)
		if z.Largest > z.MaxGPUs {
			why += fmt.Sprintf(", of those of up to %d: %s", most, d.whyMost)
		}
		if err := choose(why, []string{maxGPUsKey}, z.MaxGPUs); err != nil {
			return nil, nil, nil, err
		}
	}
	w := &Workload{Source: &Source{Cluster: spec}, GPUs: gpus}
	if !z.Enough && z.Jobs > 0 && !keep.Window && !keep.Warm {
		return nil, nil, nil, tooFew(z.Jobs, z.Cut.Next, info.File, has[warmKey])
	}
	cut.MaxGPUs, cut.Window, cut.Warm = z.MaxGPUs, z.Cut.Length, z.Cut.Warm
	if err := w.loadModel(ctx, cut, nil); err != nil {
		return nil, nil, nil, d.WithFlags(err)
	}
	if w.setPace(t, cut); cut.Mode == sched.Ongoing && t.File == "" {
		if jobs, info, err = workload.LoadTraceContext(ctx, w.pace().trace); err != nil {
			return nil, nil, nil, err
		}
	}
	if err := w.cutJobs(cut, jobs, info); err != nil {
		return nil, nil, nil, d.WithFlags(err)
	}
	if sizes, values := chosenSizes(&keep, z.Cut.Length, z.Cut.Warm); len(sizes) > 0 {
		err = choose(w.gives(z.Jobs), sizes, values...)
	}
	if err == nil {
		err = d.check(s, w)
	}
	return s, w, choices, err
}

// chosenSizes returns the keys of the sizes of windows that are not kept, and their values.
func chosenSizes(keep *sched.Kept, window, warm int) (keys []string, values []any) {
	if !keep.Window {
		keys, values = append(keys, windowKey), append(values, window)
	}
	if !keep.Warm {
		keys, values = append(keys, warmKey), append(values, warm)
	}
	return keys, values
}

// gives says how many windows so many jobs give.
func (w *Workload) gives(jobs int) string {
	return fmt.Sprintf("%s jobs give %s and %s", workload.Thousands(jobs),
		plain.Count(w.Count(traces.Validation), "validation window", "validation windows"),
		plain.Count(w.Count(traces.Test), "test window", "test windows"))
}

// inEnv returns given for the keys of settings.
func inEnv(given func(key string) bool) func(key string) bool {
	return func(key string) bool {
		if key != mixKey {
			key = "env." + key
		}
		return given(key)
	}
}

// unknown says why estimates of the trace cannot be those of s: jobs of it have none. "" = they can be, or s has
// others.
func (d *Descriptor) unknown(s Settings, jobs []traces.Job, file string) string {
	if d.Cut(s).Estimates.Mode != sim.EstimateTrace {
		return ""
	}
	n := count(jobs, func(j *traces.Job) bool { return j.Estimate <= 0 })
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s have no estimate, so run times are forecast from the jobs that have ended",
		jobsOf(n, len(jobs)), file)
}

// modelless returns the number of jobs whose model lacks what the settings require.
func (d *Descriptor) modelless(s Settings, jobs []traces.Job) int {
	return count(jobs, func(j *traces.Job) bool { return d.lacks != nil && d.lacks(s, j) != "" })
}

func count(jobs []traces.Job, is func(j *traces.Job) bool) (n int) {
	for i := range jobs {
		if is(&jobs[i]) {
			n++
		}
	}
	return n
}

// jobsOf returns "all jobs", or how many of them.
func jobsOf(n, of int) string {
	if n == of {
		return "all jobs"
	}
	return fmt.Sprintf("%s of %s jobs", workload.Thousands(n), workload.Thousands(of))
}

// Setting returns the value of a key of the settings; ok is false if they do not have it.
func Setting(s Settings, key string) (v any, ok bool) {
	if s == nil {
		return nil, false
	}
	walkKeys(reflect.ValueOf(s).Elem(), "", func(path string, x reflect.Value) {
		if path == key {
			v, ok = x.Interface(), true
		}
	})
	return v, ok
}

// settingKeys returns the keys of the settings.
func settingKeys(s Settings) map[string]bool {
	keys := map[string]bool{}
	walkKeys(reflect.ValueOf(s).Elem(), "", func(path string, _ reflect.Value) { keys[path] = true })
	return keys
}

// tooFew says that a file has too few jobs for any windows that are worth training on, each followed by next jobs.
func tooFew(jobs, next int, file string, warm bool) error {
	err := fault.Errorf("%s: too few jobs: %d are left to train on, to validate and to judge on; want at least %d",
		file, jobs, traces.FewestJobs)
	if window := jobs/10 - next; window > 0 { // one in each part
		if err = fault.Errorf("%w, or %s env.%s=%d", err, fault.Key("set"), windowKey, window); warm {
			err = fault.Errorf("%w %s env.%s=0", err, fault.Key("set"), warmKey)
		}
	}
	return &fault.Mistake{Err: err}
}

// mostGPUs returns the largest max_gpus that Fit chooses.
func (d *Descriptor) mostGPUs(s Settings) int {
	if d.MostGPUs == nil {
		return 1 << 10
	}
	return d.MostGPUs(s)
}

// WithFlags returns err with the flags that would mend it, if it says that a workload has too few jobs.
func (d *Descriptor) WithFlags(err error) error {
	few, ok := errors.AsType[*traces.TooFewError](err)
	if !ok {
		return err
	}
	c, ok := few.Fit()
	if !ok {
		return err
	}
	key := windowKey
	if d.Takes.Models { // an interval's jobs are its window
		key = "jobs"
	}
	err = fault.Errorf("%w: %s env.%s=%d", err, fault.Key("set"), key, c.Length)
	if few.Cut.Warm > 0 {
		err = fault.Errorf("%w %s env.%s=%d", err, fault.Key("set"), warmKey, c.Warm)
	}
	return &fault.Mistake{Err: err}
}
