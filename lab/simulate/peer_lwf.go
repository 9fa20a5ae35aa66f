package simulate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/lab/workload"
	"clustergym/peer/lwf"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/traces"
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

// lwfRun is a run on the machine of LWF's authors.
type lwfRun struct {
	*peerRun
	question string
	perNode  int       // GPUs of a node
	all      []lwf.Job // read, in the order of the trace
	jobs     []lwf.Job // those that fit
}

// takes implements peerMachine: nodes of equally many GPUs.
func (r *lwfRun) takes(c *cluster.Cluster) error {
	if _, r.perNode = equalNodes(c); r.perNode == 0 {
		return fault.Mistakef("%s: got %s, want nodes of equally many GPUs for this machine, as 16x4", fault.Key("cluster"),
			r.spec.Name)
	}
	return nil
}

// load implements peerMachine. It reads the machine's own files as its program has them, and other traces through the
// jobs' profiles.
func (r *lwfRun) load(ctx context.Context) error {
	own, err := r.ownFile(ctx)
	if err != nil {
		return err
	}
	if !own {
		all, info, err := workload.LoadTraceContext(ctx, r.cfg.Trace)
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
	r.jobs, err = leaveOut(r.peerRun, fmt.Sprintf("%d GPUs of %d MB", r.gpus, memory), r.all, func(j *lwf.Job) peerJob {
		work := float64(j.Iterations*(j.Forward+j.Backward)) * float64(j.Workers)
		return peerJob{j.Name, j.Workers <= r.gpus && j.Memory <= memory, work}
	})
	return err
}

// ownFile reads the trace if it is a file of the machine's own, and reports whether it is.
func (r *lwfRun) ownFile(ctx context.Context) (own bool, err error) {
	t := &r.cfg.Trace
	if t.File == "" || t.Format != workload.FormatAuto || t.Skip > 0 || t.Jobs > 0 || len(t.Columns) > 0 ||
		t.Delimiter != "" || t.Limit != 0 {
		return false, nil
	}
	path, err := workload.Located(t.File)
	if err != nil {
		return false, err
	}
	f, err := traces.OrdinaryFiles().Open(context.Background(), path)
	if err != nil {
		return false, nil //nolint:nilerr // the reader of traces will say what is wrong with the file
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
		return true, &fault.Mistake{Err: err}
	}
	r.report.Info = workload.Info{File: t.File, Format: "lwf", Read: len(r.all), Jobs: len(r.all)}
	return true, nil
}

// lwfJobs converts the simulator's jobs to the machine's. Iterations come from the trace, or from the compute time of a
// job's profile, of which two fifths are forward, as in the authors' models. A job without a profile or without whole
// GPUs is a mistake.
func lwfJobs(all []traces.Job) ([]lwf.Job, error) {
	jobs := make([]lwf.Job, 0, len(all))
	for i := range all {
		j := &all[i]
		if j.GPUMilli != 1000 || j.GPUs < 1 {
			return nil, fault.Mistakef("job %s asks for %d GPUs of %d thousandths, want whole GPUs for a machine of workers",
				j.ID, j.GPUs, j.GPUMilli)
		}
		p := j.Profile
		if p == nil || p.Compute <= 0 {
			return nil,
				fault.Mistakef(
					"job %s has no model with a compute time, want %s lwf or a trace with models for a machine that follows transfers",
					j.ID, fault.Key("mix"))
		}
		ms := max(2, p.Compute.Round(time.Millisecond).Milliseconds())
		m := lwf.Job{
			Name: j.ID, Arrival: j.Submit.Round(time.Millisecond).Milliseconds(), Workers: j.GPUs, Model: p.Name,
			Iterations: j.Iterations,
			Size:       float64(p.GradientBytes) / 1e6, Memory: p.MemBytes >> 20,
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

// run implements peerMachine.
func (r *lwfRun) run(ctx context.Context, policy string) error {
	cfg := lwf.DefaultConfig()
	cfg.Nodes, cfg.GPUs, cfg.Question, cfg.Seed = r.nodes, r.perNode, r.question, r.cfg.Seed
	if err := cfg.SetAlgorithm(policy); err != nil {
		return fault.Mistakef("%s: %w", fault.Key("policy"), err)
	}
	m, err := lwf.NewMachine(cfg)
	if err != nil {
		return err
	}
	log := r.begin(policy, len(r.jobs))
	var gpu [1]int32
	found, err := m.Run(ctx, r.jobs, func(e *lwf.Event) {
		gpus := gpu[:0]
		if e.Kind == lwf.Forward || e.Kind == lwf.Backward {
			gpus = append(gpus, int32(e.Node*r.perNode+e.GPU))
		}
		log.event(float64(e.At)/1000, e.Kind.String(), e.Kind == lwf.Finish, r.jobs[e.Job].Name, gpus)
	})
	if err := r.ended(ctx, policy, log, err); err != nil {
		return err
	}
	own := &LWF{
		Question: r.question, Steps: found.Steps, MeanJCT: found.MeanJCT(r.jobs), Busy: found.Busy,
		Questions: found.Questions, Moved: found.Moved,
	}
	if cfg.Place == "random" {
		own.Seed = cfg.Seed
	}
	if r.table != nil {
		if err := r.writeJobs(policy, found); err != nil {
			return err
		}
	}
	end := time.Duration(found.Steps-1) * time.Millisecond
	r.add(log, Result{Policy: policy, Metrics: metrics.Summarize(lwfMetrics(r.jobs, found), r.gpus, end), LWF: own})
	return nil
}

// lwfMetrics returns the machine's jobs as if the simulator had run them. A job waits until its first task, and its
// time on GPUs is what it computes, since it shares them.
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

// lwfColumns are what the machine tells of a job beyond jobColumns, named as in the recorded runs.
const lwfColumns = "placed_ms,first_task_ms,finish_ms,nodes,gpus_in_worker_order"

// writeJobs writes the rows of a run of policy.
func (r *lwfRun) writeJobs(policy string, found *lwf.Report) error {
	return r.peerRun.writeJobs(policy, func(b []byte, i, at int) []byte {
		j := &r.all[i]
		b = r.appendJob(b, i, j.Name, j.Workers, float64(j.Arrival)/1000)
		work := float64(j.Iterations*(j.Forward+j.Backward)) / 1000
		if at < 0 {
			return r.table.appendRefused(b, work, lwfColumns)
		}
		f := &found.Jobs[at]
		jct := float64(f.Finish-j.Arrival) / 1000
		b = appendFloats(b, float64(f.First)/1000, float64(f.Finish)/1000, work, float64(f.First-j.Arrival)/1000, jct,
			jct/work)
		b = append(b, ",0,0,"+stateFinished...)
		b = appendInts(r.table.appendPolicy(b), int(f.Placed), int(f.First), int(f.Finish), f.Nodes)
		b = append(b, ',')
		for k, g := range f.GPUs {
			if k > 0 {
				b = append(b, ' ')
			}
			b = append(strconv.AppendInt(b, int64(g)/int64(r.perNode), 10), '.')
			b = strconv.AppendInt(b, int64(g)%int64(r.perNode), 10)
		}
		return append(b, '\n')
	})
}
