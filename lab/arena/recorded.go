package arena

import (
	"context"
	"math"
	"slices"
	"time"

	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/statistic"
	"clustergym/lab/report"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// incumbents are the models of a recorded cluster's own scheduler that are tried, the simplest first.
var incumbents = []string{"fifo+strict", "fifo+strict+easy", "fifo+skip", "multifactor+strict+easy"}

// leastStarted is the share of the counted jobs whose start must be recorded.
const leastStarted = .95

// recorded compares what the trace says of the counted jobs of a recorded stream with what models of the cluster's
// scheduler make of them when they arrive as they did, at whatever load the policies play. It is nil if the trace has
// no starts.
func (w *Scenario) recorded(ctx context.Context, r *runner, of *streamed) (*report.Recorded, error) {
	s := r.streams
	win, err := s.At(ctx, 0)
	if err != nil {
		return nil, err
	}
	counted := win.Jobs[win.Warm : win.Warm+win.Counted]
	out := &report.Recorded{}
	for i := range counted {
		if j := &counted[i]; j.Started {
			out.Jobs++
			out.Wait += statistic.Number(j.Waited.Seconds())
		}
	}
	if float64(out.Jobs) < leastStarted*float64(len(counted)) {
		return nil, nil
	}
	out.Wait /= statistic.Number(out.Jobs)
	settings := w.judged()
	if err := configs.Own(&settings); err != nil {
		return nil, err
	}
	if err := configs.Set(settings, "load=0"); err != nil {
		return nil, err
	}
	limits := !slices.ContainsFunc(win.Jobs, func(j traces.Job) bool { return j.Assumed || j.Estimate <= 0 })
	for _, name := range incumbents {
		h := w.unaware(name)
		if limits {
			h.Estimates = sim.Estimates{Mode: sim.EstimateTrace}
		}
		if h.Validate() != nil {
			continue // it needs run times, and there are none
		}
		play, err := w.piloted(of, s.Streams, h, settings)
		if err != nil {
			return nil, err
		}
		m, on, err := play(ctx, env.Episode{}, 1)
		if err != nil {
			return nil, err
		}
		model := report.RecordedModel{Name: name, Use: statistic.Number(m.Use())}
		for _, j := range m.Jobs() {
			model.Wait += statistic.Number(j.FirstWait / float64(win.Counted))
		}
		out.Models = append(out.Models, model)
		out.Use = statistic.Number(usedAsRecorded(w.Taken.Windows.All(), counted[0].Submit,
			win.Jobs[win.Warm+win.Counted].Submit, on))
	}
	out.Closest()
	return out, nil
}

// usedAsRecorded returns the share of the GPU time from from to until in which jobs ran on the recorded cluster.
func usedAsRecorded(jobs []traces.Job, from, until time.Duration, on *sched.Window) float64 {
	if until <= from || on.GPUs == 0 {
		return math.NaN()
	}
	used := 0.0
	for i := range jobs {
		j := &jobs[i]
		if !j.Started {
			continue
		}
		start := j.Submit + j.Waited
		if a, b := max(start, from), min(start+j.Work, until); b > a {
			used += (b - a).Hours() * float64(j.Milli()) / 1000
		}
	}
	return used / (float64(on.GPUs) * (until - from).Hours())
}

// unaware returns the configuration of a scheduler over the whole queue, which stands for one that has not been tuned.
func (w *Scenario) unaware(name string) schedulers.Config {
	h := schedulers.Named(policyname.Of(name))
	h.Estimates = w.About.Cut(w.Settings).Estimates
	if place := w.About.Placement(w.Settings); place != "" {
		h.Placement = place
	}
	return h
}
