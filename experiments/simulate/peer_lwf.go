package simulate

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/env/cluster"
	"clustergym/env/metrics"
	"clustergym/env/peer/lwf"
	"clustergym/experiments/ladder"
	"clustergym/experiments/workload"
	"clustergym/traces"
	"clustergym/traces/csv"
)

// LWF holds what the machine of LWF's authors reports in addition to the metrics, in its own terms.
type LWF struct {
	Question  string  `json:"question"` // pure, orig or pureall
	Steps     int64   `json:"steps"`    // milliseconds that its program steps through
	MeanJCT   float64 `json:"mean_jct_ms"`
	Busy      int64   `json:"gpu_busy_ms"`
	Questions int64   `json:"questions"` // of orig
	Moved     float64 `json:"moved_mb"`  // what they added to transfers
	Seed      uint64  `json:"seed,omitempty"`
}

// lwfQuestion returns how AdaDUAL asks on the machine called name, "" if name is no machine of LWF's authors.
func lwfQuestion(name string) string {
	if q, ok := strings.CutPrefix(name, "lwf-"); ok && slices.Contains(lwf.Questions(), q) {
		return q
	}
	return ""
}

// lwfPolicies returns some rules by the names that the authors' program gives them: Ada-SRSF, SRSF(1) to SRSF(3), with
// LWF-1 and first fit.
func lwfPolicies() (all []string) {
	for _, place := range []string{"lwf1", "bp"} {
		for _, share := range []string{"1-true", "0-false", "1-false", "2-false"} {
			all = append(all, "ssf-"+place+"-srsf-"+share)
		}
	}
	return all
}

// lwfRun is the state of runLWF.
type lwfRun struct {
	cfg      *Config
	question string
	hooks    Hooks
	name     string // of the cluster
	nodes    int
	perNode  int
	all      []lwf.Job // read, in the order of the trace
	who      [][2]string
	jobs     []lwf.Job // that fit
	at       []int     // by index of all: that of jobs; −1 = refused
	report   *Report
	table    *jobTable
}

// runLWF is Run on the machine of LWF's authors.
func runLWF(ctx context.Context, cfg Config, question string, hooks Hooks) (*Report, error) {
	r := &lwfRun{cfg: &cfg, question: question, hooks: hooks, report: &Report{}}
	spec, err := workload.ClusterSpec(cfg.Cluster)
	if err != nil {
		return nil, err
	}
	r.name = spec.Name
	if r.nodes, r.perNode, err = equalNodes(spec); err != nil {
		return nil, err
	}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	if hooks.Jobs != nil {
		if r.table, err = newJobTable(hooks.Jobs, &cfg, nil, lwfColumns); err != nil {
			return nil, err
		}
	}
	for _, p := range cfg.Policies {
		if err := r.run(ctx, p); err != nil {
			return nil, err
		}
	}
	return r.report, nil
}

// equalNodes returns the nodes, and the GPUs of each, of a cluster of equal nodes. Any other cluster is a mistake.
func equalNodes(spec cluster.Spec) (nodes, perNode int, err error) {
	c, err := cluster.New(spec)
	if err != nil {
		return 0, 0, &workload.InputError{Err: err}
	}
	wrong := workload.Mistake("--cluster: got %s, want nodes of equally many GPUs for this machine, as 16x4", spec.Name)
	if c.Pool() || c.Nodes() == 0 {
		return 0, 0, wrong
	}
	for n := range c.Nodes() {
		a, b := c.NodeGPUs(n)
		if n == 0 {
			perNode = int(b - a)
		}
		if int(b-a) != perNode {
			return 0, 0, wrong
		}
	}
	return c.Nodes(), perNode, nil
}

// load reads the workload: the machine's own files as its program has them, and other traces through the jobs' profiles.
func (r *lwfRun) load(ctx context.Context) error {
	t := &r.cfg.Trace
	whose, err := r.ownFile(ctx)
	if err != nil {
		return err
	}
	if !whose {
		all, info, err := workload.LoadTraceContext(ctx, *t)
		if err != nil {
			return err
		}
		r.report.Info = info
		if r.all, err = lwfJobs(all); err != nil {
			return err
		}
		for i := range all {
			r.who = append(r.who, [2]string{all[i].User, all[i].VC})
		}
	}
	memory := lwf.DefaultConfig().Memory
	var never []string
	lost, total := 0.0, 0.0
	for i := range r.all {
		j := &r.all[i]
		work := float64(j.Iterations*(j.Forward+j.Backward)) * float64(j.Workers)
		total += work
		if j.Workers > r.nodes*r.perNode || j.Memory > memory {
			never, lost = append(never, j.Name), lost+work
			r.at = append(r.at, -1)
			continue
		}
		r.at = append(r.at, len(r.jobs))
		r.jobs = append(r.jobs, *j)
	}
	if len(never) == 0 {
		return nil
	}
	sized := fmt.Sprintf("%s (%d GPUs of %d MB)", r.name, r.nodes*r.perNode, memory)
	return r.report.refuse(r.cfg, sized, r.name, never, len(r.all), lost/math.Max(1, total))
}

// ownFile reads the trace if it is a file of the machine's own, and reports whether it is.
func (r *lwfRun) ownFile(ctx context.Context) (own bool, err error) {
	t := &r.cfg.Trace
	if t.File == "" || t.Format != workload.FormatAuto || t.Skip > 0 || t.Jobs > 0 || len(t.Columns) > 0 || t.Delimiter != "" {
		return false, nil
	}
	path, err := workload.Located(t.File)
	if err != nil {
		return false, err
	}
	f, err := traces.OpenFile(path)
	if err != nil {
		return false, nil //nolint:nilerr // whoever reads traces says what is wrong with the file
	}
	defer f.Close() //nolint:errcheck // open for reading only
	in := bufio.NewReaderSize(f, 1<<16)
	head, err := in.Peek(1 << 12)
	if err != nil && err != io.EOF {
		return false, nil //nolint:nilerr // likewise
	}
	first := strings.Split(string(workload.FirstLine(head)), ",")
	for _, c := range lwf.Header() {
		if !slices.Contains(first, c) {
			return false, nil
		}
	}
	if r.all, err = lwf.ReadJobs(workload.NewCtxReader(ctx, in), t.File); err != nil {
		return true, &workload.InputError{Err: err}
	}
	r.who = make([][2]string, len(r.all))
	r.report.Info = workload.Info{File: t.File, Format: "lwf", Read: len(r.all), Jobs: len(r.all)}
	return true, nil
}

// lwfJobs converts the simulator's jobs to the machine's. Iterations come from the trace, or from the compute time of a job's
// profile, of which two fifths are forward, as in the authors' models. A job without a profile or without whole GPUs is a mistake.
func lwfJobs(all []traces.Job) ([]lwf.Job, error) {
	jobs := make([]lwf.Job, 0, len(all))
	for i := range all {
		j := &all[i]
		if j.GPUMilli != 1000 || j.GPUs < 1 {
			return nil, workload.Mistake("job %s asks for %d GPUs of %d thousandths, want whole GPUs for a machine of workers", j.ID, j.GPUs, j.GPUMilli)
		}
		p := j.Profile
		if p == nil || p.Compute <= 0 {
			return nil, workload.Mistake("job %s has no model with a compute time, want --mix lwf or a trace with models for a machine that follows transfers", j.ID)
		}
		ms := max(2, p.Compute.Round(time.Millisecond).Milliseconds())
		m := lwf.Job{
			Name: j.ID, Arrival: j.Submit.Round(time.Millisecond).Milliseconds(), Workers: j.GPUs, Model: p.Name, Iterations: j.Iterations,
			Size: float64(p.GradientBytes) / 1e6, Memory: p.MemBytes >> 20,
		}
		m.Forward = max(1, ms*2/5)
		m.Backward = ms - m.Forward
		if m.Iterations < 1 {
			m.Iterations = max(1, int64(math.Round(float64(j.Work)/float64(p.Compute))))
		}
		jobs = append(jobs, m)
	}
	return jobs, nil
}

// run runs one policy and adds its result to the report.
func (r *lwfRun) run(ctx context.Context, policy string) error {
	cfg := lwf.DefaultConfig()
	cfg.Nodes, cfg.GPUs, cfg.Question, cfg.Seed = r.nodes, r.perNode, r.question, r.cfg.Seed
	if err := cfg.SetAlgorithm(policy); err != nil {
		return workload.Mistake("--policy: %w", err)
	}
	m, err := lwf.NewMachine(cfg)
	if err != nil {
		return err
	}
	log := lwfLog{jobs: r.jobs, perNode: r.perNode}
	if r.hooks.Events != nil {
		log.w = newEventLog(r.hooks.Events)
	}
	if r.hooks.Progress != nil {
		log.watch = &watch{tell: r.hooks.Progress, at: Progress{Policy: policy, Run: len(r.report.Runs), Runs: len(r.cfg.Policies), Jobs: len(r.jobs)}}
	}
	var begin time.Time
	if r.hooks.Now != nil {
		begin = r.hooks.Now()
	}
	found, err := m.Run(ctx, r.jobs, log.observe)
	err = cmp.Or(err, log.err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &workload.InputError{Err: fmt.Errorf("policy %s on the machine %s: %w", policy, r.cfg.Peer.Name, err)}
	}
	own := &LWF{
		Question: r.question, Steps: found.Steps, MeanJCT: found.MeanJCT(r.jobs), Busy: found.Busy, Questions: found.Questions, Moved: found.Moved,
	}
	if cfg.Place == "random" {
		own.Seed = cfg.Seed
	}
	run := Result{
		Policy: policy, Placement: "own", Backfill: "none", Estimates: "exact", Rung: ladder.Rung("exact"),
		Trace:   traceOf(&r.report.Info, len(r.all), len(r.report.refused), r.report.refusedShare, r.report.refused[:min(namedJobs, len(r.report.refused))]),
		Cluster: Cluster{Name: r.name, Nodes: r.nodes, GPUs: r.nodes * r.perNode}, Events: log.n, LWF: own,
		Metrics: metrics.Summarize(lwfMetrics(r.jobs, found), r.nodes*r.perNode, time.Duration(found.Steps-1)*time.Millisecond),
	}
	if r.hooks.Now != nil {
		run.WallS = r.hooks.Now().Sub(begin).Seconds()
	}
	if log.w != nil {
		if err := log.w.flush(); err != nil {
			return err
		}
	}
	if r.table != nil {
		if err := r.writeJobs(policy, found); err != nil {
			return err
		}
	}
	r.report.Runs = append(r.report.Runs, run)
	return nil
}

// lwfMetrics returns the machine's jobs as if the simulator had run them. A job waits until its first task, and its time on GPUs
// is what it computes, since it shares them.
func lwfMetrics(jobs []lwf.Job, found *lwf.Report) []metrics.Job {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	list := make([]metrics.Job, len(jobs))
	for i := range jobs {
		j, f := &jobs[i], &found.Jobs[i]
		work := ms(j.Iterations * (j.Forward + j.Backward))
		list[i] = metrics.Job{
			Submit: ms(j.Arrival), First: ms(f.First), Finish: ms(f.Finish), Run: ms(f.Finish - f.First), Work: work,
			GPUTime: work.Seconds() * float64(j.Workers), Pos: int32(i), GPUs: int32(j.Workers), Milli: 1000,
		}
	}
	return list
}

// lwfLog counts the events of the machine. If w is not nil, it also writes them like eventLog, with the machine's names.
type lwfLog struct {
	jobs    []lwf.Job
	perNode int
	w       *eventLog
	watch   *watch // nil = nobody watches
	n       int
	err     error
}

// observe counts and writes one event.
func (l *lwfLog) observe(e *lwf.Event) {
	l.n++
	if l.watch != nil {
		l.watch.event(time.Duration(e.At)*time.Millisecond, e.Kind == lwf.Finish)
	}
	if l.w == nil || l.err != nil {
		return
	}
	b := append(l.w.row[:0], `{"t_s":`...)
	b = strconv.AppendFloat(b, float64(e.At)/1000, 'f', -1, 64)
	b = append(b, `,"event":"`...)
	b = append(b, e.Kind.String()...)
	b = append(b, `","job":`...)
	b = appendJSON(b, l.jobs[e.Job].Name)
	b = append(b, `,"gpus":[`...)
	if e.Kind == lwf.Forward || e.Kind == lwf.Backward {
		b = strconv.AppendInt(b, int64(e.Node*l.perNode+e.GPU), 10)
	}
	l.w.row = append(b, "]}\n"...)
	_, l.err = l.w.w.Write(l.w.row)
}

// lwfColumns are what the machine tells of a job beyond jobColumns, named as in the recorded runs.
const lwfColumns = "placed_ms,first_task_ms,finish_ms,nodes,gpus_in_worker_order"

// writeJobs writes the rows of a run of policy.
func (r *lwfRun) writeJobs(policy string, found *lwf.Report) error {
	t := r.table
	t.policy = policy
	var b []byte
	for i := range r.all {
		j := &r.all[i]
		b = append(csv.AppendText(b[:0], j.Name), ',')
		b = append(csv.AppendText(b, r.who[i][0]), ',')
		b = csv.AppendText(b, r.who[i][1])
		arrival, work := float64(j.Arrival)/1000, float64(j.Iterations*(j.Forward+j.Backward))/1000
		b = appendFloats(appendInts(b, j.Workers), arrival)
		if r.at[i] < 0 {
			b = appendFloats(append(b, ",,"...), work)
			b = append(b, ",,,,0,0,"+stateRefused...)
			b = append(t.appendPolicy(b), strings.Repeat(",", 1+strings.Count(lwfColumns, ","))+"\n"...)
		} else {
			f := &found.Jobs[r.at[i]]
			jct := float64(f.Finish-j.Arrival) / 1000
			b = appendFloats(b, float64(f.First)/1000, float64(f.Finish)/1000, work, float64(f.First-j.Arrival)/1000, jct, jct/work)
			b = append(b, ",0,0,"+stateFinished...)
			b = appendInts(t.appendPolicy(b), int(f.Placed), int(f.First), int(f.Finish), f.Nodes)
			b = append(b, ',')
			for k, g := range f.GPUs {
				if k > 0 {
					b = append(b, ' ')
				}
				b = append(strconv.AppendInt(b, int64(g)/int64(r.perNode), 10), '.')
				b = strconv.AppendInt(b, int64(g)%int64(r.perNode), 10)
			}
			b = append(b, '\n')
		}
		if _, err := t.w.Write(b); err != nil {
			return err
		}
	}
	return t.w.Flush()
}
