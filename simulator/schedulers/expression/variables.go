package expression

import (
	"time"

	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// Looks says what the value of an expression follows from.
type Looks uint8

// What a value can follow from, besides what never changes of a waiting job.
const (
	Clock     Looks = 1 << iota // the time: it changes while a job waits, and the ranks with it
	Usage                       // what waits and runs: every decision changes it
	Estimates                   // what is known of run times
	RunTimes                    // the run times themselves, which only the rung exact knows
)

// Variable is something of a job or the cluster that an expression can look at.
type Variable struct {
	Name string
	Unit string // "" = a text, a condition or a plain number
	// About says what it is, as a part of a sentence.
	About string
	Looks Looks

	number func(e *state) float64
	truth  func(e *state) bool
	text   func(e *state) string
}

// Kind returns number, condition or text.
func (v *Variable) Kind() string { return v.value().kind.String() }

func (v *Variable) value() value {
	x := value{number: v.number, truth: v.truth, text: v.text, looks: v.Looks}
	if v.Looks&Clock != 0 {
		x.rate = 1
	}
	x.natural = v.number != nil && v.Name != "priority"
	switch {
	case v.truth != nil:
		x.kind = condition
	case v.text != nil:
		x.kind = text
	}
	return x
}

// state is what variables are read from: a job in a run, and what is known of run times.
type state struct {
	view *sim.View
	job  sim.Job
	est  *sim.Estimates
	sums sums
	// origin says that the clock is taken to show 0, so that a job has waited for less than no time.
	origin bool
}

// now returns the time on the clock.
func (e *state) now() time.Duration {
	if e.origin {
		return 0
	}
	return e.view.Now()
}

// sums are over the jobs of a run, at one moment of it.
type sums struct {
	valid              bool
	now                time.Duration
	version, decisions uint64
	waiting, running   int

	queued   int            // thousandths of GPUs for which the waiting jobs ask
	users    map[string]int // thousandths of GPUs that the running jobs of each hold
	clusters map[string]int // likewise of virtual clusters
}

// look computes the sums if the run has changed since.
func (e *state) look() *sums {
	s, v := &e.sums, e.view
	waiting, running := v.Waiting(), v.Running()
	if s.valid && s.now == v.Now() && s.version == v.Cluster().Version() && s.decisions == v.Decisions() &&
		s.waiting == len(waiting) && s.running == len(running) {
		return s
	}
	s.valid, s.now, s.version, s.decisions = true, v.Now(), v.Cluster().Version(), v.Decisions()
	s.waiting, s.running, s.queued = len(waiting), len(running), 0
	if s.users == nil {
		s.users, s.clusters = map[string]int{}, map[string]int{}
	}
	clear(s.users)
	clear(s.clusters)
	for _, j := range waiting {
		s.queued += queue.Milli(v, j)
	}
	for _, j := range running {
		t, n := v.Trace(j), queue.Milli(v, j)
		s.users[t.User] += n
		s.clusters[t.VC] += n
	}
	return s
}

// seconds returns a time in seconds.
func seconds(d time.Duration) float64 { return d.Seconds() }

// estimate returns an estimated time in seconds, above 0.
func estimate(d time.Duration) float64 { return float64(max(1, d)) / 1e9 }

// quantile returns the variable of a forecast's quantile.
func quantile(level int) func(e *state) float64 {
	return func(e *state) float64 {
		if e.est.Causal() {
			return estimate(e.view.Forecast(e.job).Q[level])
		}
		return estimate(e.est.Of(e.view, e.job))
	}
}

// The places of the levels among predict.Levels.
const (
	tenth = iota
	quarter
	half
	threeQuarters
	nineTenths
)

var _ = [1]struct{}{}[nineTenths+1-predict.Quantiles] // the levels are these

// Variables returns the variables, those of the job first.
func Variables() []Variable { return append(ofTheJob(), ofTheCluster()...) }

func ofTheJob() []Variable {
	return []Variable{
		{Name: "wait", Unit: "s", About: "time since its submit", Looks: Clock,
			number: func(e *state) float64 { return seconds(e.now() - e.view.Trace(e.job).Submit) }},
		{Name: "submit", Unit: "s", About: "its submit on the clock of the run",
			number: func(e *state) float64 { return seconds(e.view.Trace(e.job).Submit) }},
		{Name: "position", Unit: "jobs", About: "jobs before it in the trace that fit the cluster",
			number: func(e *state) float64 { return float64(e.view.Pos(e.job)) }},
		{Name: "gpus", Unit: "GPUs", About: "GPUs or processors that it asks for, shared ones by their share",
			number: func(e *state) float64 { return float64(queue.Milli(e.view, e.job)) / 1000 }},
		{Name: "cpus", Unit: "cores", About: "cores for the whole gang, 0 = not given",
			number: func(e *state) float64 { return float64(e.view.Trace(e.job).CPUMilli) / 1000 }},
		{Name: "memory", Unit: "GiB", About: "main memory for the whole gang, 0 = not given",
			number: func(e *state) float64 { return float64(e.view.Trace(e.job).MemBytes) / (1 << 30) }},
		{Name: "priority", About: "its priority in the trace, 0 = not given",
			number: func(e *state) float64 { return float64(e.view.Trace(e.job).Priority) }},
		{Name: "user", About: `its user, "" = not given`,
			text: func(e *state) string { return e.view.Trace(e.job).User }},
		{Name: "group", About: `the group of its user, or the tag of recurring jobs, "" = not given`,
			text: func(e *state) string { return e.view.Trace(e.job).Group }},
		{Name: "vc", About: `its virtual cluster or queue, "" = not given`,
			text: func(e *state) string { return e.view.Trace(e.job).VC }},
		{Name: "name", About: `the name of the job, its script or its program, "" = not given`,
			text: func(e *state) string { return e.view.Trace(e.job).Name }},
		{Name: "model", About: `the model that it trains, "" = not given`,
			text: func(e *state) string { return e.view.Trace(e.job).Model }},
		{Name: "gpu_type", About: `the first type of GPU that it accepts, "" = any`,
			text: func(e *state) string {
				if types := e.view.Trace(e.job).GPUTypes; len(types) > 0 {
					return types[0]
				}
				return ""
			}},
		{Name: "estimate", Unit: "s", Looks: Estimates,
			About:  "its estimated run time: requested, the median of a forecast, noisy or exact, by the estimates of the run",
			number: func(e *state) float64 { return estimate(e.est.Of(e.view, e.job)) }},
		{Name: "estimate_mean", Unit: "s", Looks: Estimates,
			About: "the mean of its forecast; the estimate where that is one number",
			number: func(e *state) float64 {
				if e.est.Causal() {
					return estimate(e.view.Forecast(e.job).Mean())
				}
				return estimate(e.est.Of(e.view, e.job))
			}},
		{Name: "estimate_p10", Unit: "s", Looks: Estimates, number: quantile(tenth),
			About: "the time within which 10 % of such jobs end by its forecast; the estimate where that is one number"},
		{Name: "estimate_p25", Unit: "s", Looks: Estimates, number: quantile(quarter), About: "likewise 25 %"},
		{Name: "estimate_p75", Unit: "s", Looks: Estimates, number: quantile(threeQuarters), About: "likewise 75 %"},
		{Name: "estimate_p90", Unit: "s", Looks: Estimates, number: quantile(nineTenths), About: "likewise 90 %"},
		{Name: "left", Unit: "s", Looks: Estimates,
			About:  "the estimated run time that is left; a job that outlives its estimate is estimated again",
			number: func(e *state) float64 { return queue.Remaining(*e.est, e.view, e.job) / 1e9 }},
		{Name: "run_time", Unit: "s", Looks: Estimates | RunTimes,
			About:  "its run time, which no cluster knows: for estimates exact alone",
			number: func(e *state) float64 { return estimate(e.view.Trace(e.job).Work) }},
		{Name: "ran", Unit: "s", About: "time that it has run so far",
			number: func(e *state) float64 { return seconds(e.view.Ran(e.job)) }},
		{Name: "attained", Unit: "GPU s", About: "GPU-time that it has had so far",
			number: func(e *state) float64 { return e.view.GPUTime(e.job) / 1e9 }},
		{Name: "stops", About: "how often it was stopped by a decision",
			number: func(e *state) float64 { return float64(e.view.Preemptions(e.job)) }},
		{Name: "failures", About: "how often it lost a node",
			number: func(e *state) float64 { return float64(e.view.Failures(e.job)) }},
		{Name: "running", About: "whether it runs",
			truth: func(e *state) bool { return e.view.State(e.job) == sim.Running }},
	}
}

func ofTheCluster() []Variable {
	return []Variable{
		{Name: "now", Unit: "s", About: "the clock of the run", Looks: Clock,
			number: func(e *state) float64 { return seconds(e.now()) }},
		{Name: "total_gpus", Unit: "GPUs", About: "GPUs or processors of the cluster",
			number: func(e *state) float64 { return float64(place.OwnGPUs(e.view.Cluster())) }},
		{Name: "free_gpus", Unit: "GPUs", About: "free ones, shared ones by what is left", Looks: Usage,
			number: func(e *state) float64 { return float64(e.view.Cluster().FreeMilli()) / 1000 }},
		{Name: "waiting_jobs", Unit: "jobs", About: "jobs that wait", Looks: Usage,
			number: func(e *state) float64 { return float64(len(e.view.Waiting())) }},
		{Name: "waiting_gpus", Unit: "GPUs", About: "GPUs for which they ask", Looks: Usage,
			number: func(e *state) float64 { return float64(e.look().queued) / 1000 }},
		{Name: "running_jobs", Unit: "jobs", About: "jobs that run", Looks: Usage,
			number: func(e *state) float64 { return float64(len(e.view.Running())) }},
		{Name: "user_gpus", Unit: "GPUs", About: "GPUs of the running jobs of its user", Looks: Usage,
			number: func(e *state) float64 { return float64(e.look().users[e.view.Trace(e.job).User]) / 1000 }},
		{Name: "vc_gpus", Unit: "GPUs", About: "GPUs of the running jobs of its virtual cluster", Looks: Usage,
			number: func(e *state) float64 { return float64(e.look().clusters[e.view.Trace(e.job).VC]) / 1000 }},
	}
}
