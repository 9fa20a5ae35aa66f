package simulate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces/csv"
)

// peerMachine is the machine of a peer in a run.
type peerMachine interface {
	// takes takes the cluster. One of another form than the machine's is a mistake.
	takes(c *cluster.Cluster) error
	// load reads the workload and leaves out the jobs that the machine can never hold.
	load(ctx context.Context) error
	// run runs one policy, writes its rows of the table of jobs, and adds its result to the report.
	run(ctx context.Context, policy string) error
}

// peerRun is what runs on all peers' machines have.
type peerRun struct {
	cfg         *Config
	hooks       Hooks
	spec        cluster.Spec
	nodes, gpus int
	read        int         // jobs, with those that are left out
	who         [][2]string // users and virtual clusters of all jobs that were read; nil = unknown
	at          []int       // by jobs that were read: the place among those that fit; −1 = left out
	report      *Report
	table       *jobTable // nil if no file of jobs is written
}

// runPeer is Run on a peer's machine. cfg must be valid.
func runPeer(ctx context.Context, cfg Config, hooks Hooks) (*Report, error) {
	r := &peerRun{cfg: &cfg, hooks: hooks, report: &Report{}}
	var m peerMachine
	var columns string
	if question := lwfQuestion(cfg.Peer.Name); question != "" {
		m, columns = &lwfRun{peerRun: r, question: question}, lwfColumns
	} else {
		m, columns = &dallyRun{peerRun: r}, dallyColumns
	}
	var err error
	if r.spec, err = workload.ClusterSpec(cfg.Cluster); err != nil {
		return nil, err
	}
	c, err := cluster.New(r.spec)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	r.nodes, r.gpus = c.Nodes(), c.GPUs()
	if err := m.takes(c); err != nil {
		return nil, err
	}
	if err := m.load(ctx); err != nil {
		return nil, err
	}
	if hooks.Jobs != nil {
		if r.table, err = newJobTable(hooks.Jobs, &cfg, nil, columns); err != nil {
			return nil, err
		}
	}
	for _, p := range cfg.Policies {
		if err := m.run(ctx, p); err != nil {
			return nil, err
		}
	}
	return r.report, nil
}

// equalNodes returns the nodes, and the GPUs of each, of a cluster of equal nodes. each is 0 for any other cluster.
func equalNodes(c *cluster.Cluster) (nodes, each int) {
	if c.Pool() {
		return 0, 0
	}
	for n := range c.Nodes() {
		a, b := c.NodeGPUs(n)
		if n > 0 && int(b-a) != each {
			return 0, 0
		}
		each = int(b - a)
	}
	return c.Nodes(), each
}

// peerJob is what leaveOut asks of a job of a machine.
type peerJob struct {
	name string
	fits bool
	work float64 // GPU time, in any unit
}

// leaveOut returns the jobs of all that the machine can hold, and notes the others. size says how large the cluster is.
// It returns a mistake if no job remains, or if the configuration wants one.
func leaveOut[J any](r *peerRun, size string, all []J, of func(j *J) peerJob) (jobs []J, err error) {
	var never []string
	lost, total := 0.0, 0.0
	for i := range all {
		j := of(&all[i])
		total += j.work
		if !j.fits {
			never, lost = append(never, j.name), lost+j.work
			r.at = append(r.at, -1)
			continue
		}
		r.at = append(r.at, len(jobs))
		jobs = append(jobs, all[i])
	}
	if r.read = len(all); len(never) == 0 {
		return jobs, nil
	}
	share := 0.0
	if total > 0 {
		share = lost / total
	}
	ids := listIDs(never[:min(namedJobs, len(never))], len(never))
	if r.cfg.FailRefused || len(never) == len(all) {
		return nil, fault.Mistakef("%d of %s can never fit cluster %s (%s): %s; want a larger cluster", len(never),
			plain.Count(len(all), "job", "jobs"), r.spec.Name, size, ids)
	}
	r.report.refused, r.report.refusedShare = never, share
	r.report.note("%s refused, because cluster %s can never hold them: %s", workload.Part(len(never), len(all), share),
		r.spec.Name, ids)
	return jobs, nil
}

// writeJobs writes the rows of the jobs that were read, for a run of policy. row appends that of a job to b, whose
// place among those that fit is at.
func (r *peerRun) writeJobs(policy string, row func(b []byte, i, at int) []byte) error {
	r.table.policy = policy
	var b []byte
	for i, at := range r.at {
		b = row(b[:0], i, at)
		if _, err := r.table.w.Write(b); err != nil {
			return err
		}
	}
	return r.table.w.Flush()
}

// peerLog counts the events of a run of one policy on a peer's machine, tells its progress, and writes the events like
// eventLog, with the machine's names.
type peerLog struct {
	w     *eventLog // nil = events are not written
	watch *watch    // nil = nobody watches
	wall  func() float64
	wallS float64 // which the run took, with its events
	n     int
	err   error // of the first event that could not be written
}

// begin returns the log of a run of policy that begins now.
func (r *peerRun) begin(policy string, jobs int) *peerLog {
	l := &peerLog{wall: r.hooks.clock()}
	if r.hooks.Events != nil {
		l.w = newEventLog(r.hooks.Events)
	}
	if r.hooks.Progress != nil {
		l.watch = &watch{tell: r.hooks.Progress,
			at: Progress{Policy: policy, Run: len(r.report.Runs), Runs: len(r.cfg.Policies), Jobs: jobs}}
	}
	return l
}

// event counts an event at so many seconds, and writes it. finish says that it is the end of a job.
func (l *peerLog) event(seconds float64, kind string, finish bool, job string, gpus []int32) {
	l.n++
	if l.watch != nil {
		l.watch.event(time.Duration(math.Round(seconds*1e9)), finish)
	}
	if l.w == nil || l.err != nil {
		return
	}
	b := strconv.AppendFloat(append(l.w.row[:0], `{"t_s":`...), seconds, 'f', -1, 64)
	l.w.row = appendJobEvent(b, kind, job, gpus)
	_, l.err = l.w.w.Write(l.w.row)
}

// ended stops the clock and ends the events of a run that returned err, and returns what went wrong.
func (r *peerRun) ended(ctx context.Context, policy string, l *peerLog, err error) error {
	l.wallS = l.wall()
	err = cmp.Or(err, l.err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &fault.Mistake{Err: fmt.Errorf("policy %s on the machine %s: %w", policy, r.cfg.Peer.Name, err)}
	case l.w != nil:
		return l.w.flush()
	}
	return nil
}

// add adds a result to the report, with what results of all machines have.
func (r *peerRun) add(l *peerLog, run Result) {
	refused := r.report.refused
	run.Placement, run.Backfill, run.Estimates, run.Rung = "own", "none", sim.Estimates{Mode: sim.EstimateExact},
		sim.RungExact.String()
	run.Trace = traceOf(&r.report.Info, r.read, len(refused), r.report.refusedShare,
		refused[:min(namedJobs, len(refused))])
	run.Cluster = Cluster{Name: r.spec.Name, Nodes: r.nodes, GPUs: r.gpus}
	run.Events, run.WallS = l.n, l.wallS
	r.report.Runs = append(r.report.Runs, run)
}

// appendJob appends the columns of the table of jobs that say what job i of those that were read is. arrival is in
// seconds.
func (r *peerRun) appendJob(b []byte, i int, name string, gpus int, arrival float64) []byte {
	var who [2]string
	if r.who != nil {
		who = r.who[i]
	}
	b = append(csv.AppendText(b, name), ',')
	b = append(csv.AppendText(b, who[0]), ',')
	b = csv.AppendText(b, who[1])
	return appendFloats(appendInts(b, gpus), arrival)
}

// appendRefused appends the other columns of a job that was left out, whose work is in seconds. columns are the
// machine's own.
func (t *jobTable) appendRefused(b []byte, work float64, columns string) []byte {
	b = appendFloats(append(b, ",,"...), work)
	b = t.appendPolicy(append(b, ",,,,0,0,"+stateRefused...))
	for range 1 + strings.Count(columns, ",") {
		b = append(b, ',')
	}
	return append(b, '\n')
}

// appendFloats appends numbers with all their digits, each behind a comma.
func appendFloats(b []byte, vs ...float64) []byte {
	for _, v := range vs {
		b = strconv.AppendFloat(append(b, ','), v, 'f', -1, 64)
	}
	return b
}

// appendInts appends numbers, each behind a comma.
func appendInts(b []byte, ns ...int) []byte {
	for _, n := range ns {
		b = strconv.AppendInt(append(b, ','), int64(n), 10)
	}
	return b
}
