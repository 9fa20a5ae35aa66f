package pages

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"clustergym/lab/sweep"
)

// metrics returns the handler of /metrics. Figures of runs are read from their files when somebody asks.
func (s *Server) metrics() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

var (
	descs    []*prometheus.Desc // all that describe has made
	describe = func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc("clustergym_"+name, help, labels, nil)
		descs = append(descs, d)
		return d
	}
	ofRun = func(name, help string, more ...string) *prometheus.Desc {
		return describe(name, help, append([]string{"run", "env", "agent"}, more...)...)
	}

	descBuild    = describe("ui_info", "The program that serves these pages.", "version")
	descStep     = ofRun("run_step", "Steps that a run has taken.")
	descSteps    = ofRun("run_steps_target", "Steps that a run is to take (train.steps).")
	descLines    = ofRun("run_lines_total", "Lines of progress.jsonl.")
	descEpisodes = ofRun("run_episodes_total", "Episodes that have ended.")
	descUpdates  = ofRun("run_updates_total", "Updates of the agent.")
	descReturn   = ofRun("run_return_mean", "Mean return of the episodes since the line before.")
	descLength   = ofRun("run_length_mean", "Mean length of those episodes, in steps.")
	descRate     = ofRun("run_steps_per_second", "Steps per second of the run, without evaluations.")
	descWall     = ofRun("run_wall_seconds", "Time that the process of the last line had trained.")
	descLeft     = ofRun("run_left_seconds", "Time that is left at the present rate, of a run that goes on.")
	descSilent   = ofRun("run_silent_seconds", "Time since progress.jsonl was written last.")
	descState    = ofRun("run_state", "1 for the state that a run is in: coming, running, silent or done.", "state")
	descLoss     = ofRun("run_train", "What the last update reported, by the names of docs/reference/metrics.md.",
		"name")
	descValidation = ofRun("run_validation", "The last validation, by metric.", "metric")
	descBest       = ofRun("run_validation_best", "The best validation so far, by metric.", "metric")
	descTrials     = describe("sweep_trials", "Trials of a sweep, by state.", "sweep", "state")
	descRungs      = describe("sweep_lines_total", "Results of trials on rungs.", "sweep")
	descCells      = describe("experiment_cells", "Cells of an experiment, by state.", "experiment", "state")
	descWorkTasks  = describe("worker_tasks", "Tasks that a worker has in work.", "worker")
	descWorkSlots  = describe("worker_slots", "Tasks that a worker does at once.", "worker")
	descWorkDone   = describe("worker_tasks_done_total", "Tasks that a worker has done.", "worker")
	descWorkFailed = describe("worker_tasks_failed_total", "Tasks that failed at a worker.", "worker")
	descQueueTasks = describe("queue_tasks", "Tasks of this command's queue, by state.", "queue", "state")
	descQueueWorks = describe("queue_workers", "Workers of this command's queue: well, or silent for a while.", "queue",
		"state")
)

// collector reads the figures of everything that a server shows.
type collector struct{ s *Server }

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		// keys of a damaged file and names of folders can be any bytes, and a panic here would end a training
		for i, l := range labels {
			labels[i] = strings.ToValidUTF8(l, "\uFFFD")
		}
		to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	put(descBuild, gauge, 1, c.s.opt.Version)
	all, _ := c.s.entries()
	for _, e := range all {
		if e.away != nil {
			continue // the list says so
		}
		switch e.Kind {
		case aRun:
			c.run(e, put)
		case aSweep:
			lines, err := sweep.Lines(e.path)
			cfg, _, err2 := sweep.Read(e.path)
			if err != nil || err2 != nil {
				continue // it is being made, or damaged: its page says so
			}
			begun, failed := map[int]bool{}, map[int]bool{}
			for _, l := range lines {
				begun[l.Trial] = true
				if l.Error != "" {
					failed[l.Trial] = true
				}
			}
			put(descTrials, gauge, float64(cfg.Trials-len(begun)), e.Name, "waiting")
			put(descTrials, gauge, float64(len(begun)-len(failed)), e.Name, "trained")
			put(descTrials, gauge, float64(len(failed)), e.Name, "failed")
			put(descRungs, counter, float64(len(lines)), e.Name)
		case experiment:
			st, err := c.s.standing(e.path)
			if err != nil {
				continue
			}
			n := map[bool]int{}
			for _, x := range st.Cells {
				n[x.Done]++
			}
			put(descCells, gauge, float64(n[true]), e.Name, "done")
			put(descCells, gauge, float64(n[false]), e.Name, "waiting")
		}
	}
	if c.s.opt.Worker != nil {
		w := c.s.opt.Worker()
		put(descWorkTasks, gauge, float64(len(w.Tasks)), w.Name)
		put(descWorkSlots, gauge, float64(w.Slots), w.Name)
		put(descWorkDone, counter, float64(w.Done), w.Name)
		put(descWorkFailed, counter, float64(w.Fails), w.Name)
	}
	if q := c.s.status(); q != nil {
		for state, n := range map[string]int{"done": q.Done, "working": q.Working, "waiting": q.Waiting, "failed": q.Failed} {
			put(descQueueTasks, gauge, float64(n), q.Job, state)
		}
		n := map[bool]int{}
		for i := range q.Workers {
			n[q.Workers[i].Silent > 0]++
		}
		put(descQueueWorks, gauge, float64(n[false]), q.Job, "well")
		put(descQueueWorks, gauge, float64(n[true]), q.Job, "silent")
	}
}

func (c *collector) run(e entry, put func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string)) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	s := c.s.data(e.path).summarise(e, c.s.opt.Now(), false)
	if s.Fault != "" {
		return
	}
	of := []string{e.Name, s.Env, s.Agent}
	with := func(more ...string) []string { return append(append([]string{}, of...), more...) }
	put(descStep, gauge, float64(s.Step), of...)
	put(descSteps, gauge, float64(s.Steps), of...)
	put(descLines, counter, float64(s.Lines), of...)
	for d, v := range map[*prometheus.Desc]*float64{
		descReturn: s.Return, descRate: s.Rate, descWall: s.Wall, descLeft: s.Left, descSilent: s.Seen, descLength: s.Length,
	} {
		if v != nil {
			put(d, gauge, *v, of...)
		}
	}
	for d, v := range map[*prometheus.Desc]*float64{descEpisodes: s.Episodes, descUpdates: s.Updates} {
		if v != nil {
			put(d, counter, *v, of...)
		}
	}
	for _, state := range []string{"coming", "running", "silent", "done"} {
		v := 0.0
		if s.State == state {
			v = 1
		}
		put(descState, gauge, v, with(state)...)
	}
	for name, v := range s.Losses {
		put(descLoss, gauge, v, with(name)...)
	}
	if s.Valid != nil {
		put(descValidation, gauge, *s.Valid, with(s.Metric)...)
	}
	if s.Best != nil {
		put(descBest, gauge, *s.Best, with(s.Metric)...)
	}
}
