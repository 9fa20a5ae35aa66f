package simulate

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/policyname"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/csv"
)

// jobColumns are the columns of the table of jobs. Those of the native trace format have its units, so that the table
// can be read as a trace.
const jobColumns = "job_id,user,vc,num_gpu,submit_time,first_start,finish,duration,wait,jct,slowdown,preemptions,migrations,state"

// The states of jobs in the table.
const (
	stateFinished   = "finished"
	stateUnfinished = "unfinished" // at the end of the run, submitted or not
	stateDropped    = "dropped"    // by the scheduler
	stateRefused    = "refused"    // it can never fit the cluster
)

// jobTable writes a CSV row for each job, in the order of the trace. It holds the rows behind the first job that has
// not ended, and no others. Not safe for concurrent use.
type jobTable struct {
	w            *bufio.Writer
	cluster      *cluster.Cluster // empty; tells which jobs of a streamed trace are refused
	several      bool             // runs: each row names its policy
	warmup, tail int              // if any is set, each row says whether its job is counted

	// Of one run.
	policy  string
	refused []refusedJob // jobs that were taken out of the trace before the run and are not yet in the table
	read    int          // jobs read that fit
	first   int          // position of the first of window
	window  []jobRow     // by position
	written int          // rows at the beginning of window that are in the table
	last    int          // highest position that the metrics know, -1 = none
	over    bool         // the simulation: jobs that have not ended will not
	waiting []byte       // rows of refused jobs behind the last job read
}

// refusedJob is a job that can never fit the cluster, and the position of the next job that can.
type refusedJob struct {
	job    traces.Job
	before int
}

// jobRow is the row of one job.
type jobRow struct {
	before []byte // rows of refused jobs before it
	text   []byte // its beginning; nearly the whole row once the job has ended
	work   time.Duration
	ended  bool
}

var _ sim.Observer = (*jobTable)(nil)

// newJobTable writes the header. extra are columns behind the usual ones.
func newJobTable(w io.Writer, cfg *Config, c *cluster.Cluster, extra ...string) (*jobTable, error) {
	t := &jobTable{w: bufio.NewWriterSize(w, 1<<16), cluster: c, several: len(cfg.Policies) > 1, warmup: cfg.Warmup,
		tail: cfg.Tail}
	header := []string{jobColumns}
	if t.cuts() {
		header = append(header, "counted")
	}
	if t.several {
		header = append(header, "policy")
	}
	_, err := t.w.WriteString(strings.Join(append(header, extra...), ",") + "\n")
	return t, err
}

func (t *jobTable) cuts() bool { return t.warmup > 0 || t.tail > 0 }

// begin starts the rows of a run of policy. refused are the jobs that s, its trace, lacks. The run reads the stream
// that begin returns.
func (t *jobTable) begin(policy string, s traces.Stream, refused []refusedJob) traces.Stream {
	t.policy, t.refused = string(csv.AppendText(nil, policyname.Short(policy))), refused
	t.read, t.first, t.window, t.written, t.last, t.over, t.waiting = 0, 0, t.window[:0], 0, -1, false, nil
	return &tabled{s, t}
}

// tabled is a stream whose jobs are entered into a table.
type tabled struct {
	traces.Stream
	t *jobTable
}

// Next implements traces.Stream.
func (s *tabled) Next(j *traces.Job) error {
	if err := s.Stream.Next(j); err != nil {
		return err
	}
	return s.t.enter(j)
}

// enter takes the next job of the trace.
func (t *jobTable) enter(j *traces.Job) error {
	t.refuse(t.read)
	if _, fits := t.cluster.Request(j); !fits { // of a streamed trace
		t.refuseJob(j)
		return nil
	}
	t.read++
	t.window = append(t.window, jobRow{before: t.waiting, text: appendIdentity(nil, j), work: j.Work})
	t.waiting = nil
	if !t.over {
		return nil
	}
	r := &t.window[len(t.window)-1] // submitted after the horizon
	r.text, r.ended = appendRest(r.text, j.Submit, j.Work, nil, stateUnfinished), true
	return t.flush()
}

// refuse enters the refused jobs before position pos, all for a negative one.
func (t *jobTable) refuse(pos int) {
	for len(t.refused) > 0 && (pos < 0 || t.refused[0].before <= pos) {
		t.refuseJob(&t.refused[0].job)
		t.refused = t.refused[1:]
	}
}

func (t *jobTable) refuseJob(j *traces.Job) {
	t.waiting = appendRest(appendIdentity(t.waiting, j), j.Submit, j.Work, nil, stateRefused)
	t.waiting = t.appendEnd(t.waiting, false)
}

// jobTimes are what a row says of a job that was simulated.
type jobTimes struct {
	first, finish           time.Duration // -1 = never
	ran                     time.Duration
	preemptions, migrations int
}

// Observe implements sim.Observer.
func (t *jobTable) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		switch e := &p.Events[i]; e.Kind {
		case sim.Finish:
			t.last = max(t.last, v.Pos(e.Job))
			t.end(v, e.Job, e.At, stateFinished)
		case sim.Drop:
			t.end(v, e.Job, -1, stateDropped)
		}
	}
	if v.Over() {
		for _, jobs := range [][]sim.Job{v.Running(), v.Waiting()} {
			for _, j := range jobs {
				t.last = max(t.last, v.Pos(j))
				t.end(v, j, -1, stateUnfinished)
			}
		}
	}
	return t.flush()
}

// end completes the row of a job.
func (t *jobTable) end(v *sim.View, j sim.Job, finish time.Duration, state string) {
	r := &t.window[v.Pos(j)-t.first]
	times := jobTimes{first: v.FirstStart(j), finish: finish, ran: v.Ran(j), preemptions: v.Preemptions(j),
		migrations: v.Migrations(j)}
	r.text, r.ended = appendRest(r.text, v.Trace(j).Submit, r.work, &times, state), true
}

// close ends the run. It reads the rest of s, whose jobs were never submitted.
func (t *jobTable) close(s traces.Stream) error {
	t.over = true
	for i := range t.window {
		if r := &t.window[i]; !r.ended { // the simulator had read it ahead
			r.text, r.ended = appendRest(r.text, 0, r.work, nil, stateUnfinished), true
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	if err := drain(s); err != nil {
		return err
	}
	t.refuse(-1)
	if _, err := t.w.Write(t.waiting); err != nil {
		return err
	}
	t.waiting = nil
	return t.w.Flush()
}

// flush writes the rows up to the first job that has not ended. With a tail, a row waits until it is known whether its
// job is counted.
func (t *jobTable) flush() error {
	for ; t.written < len(t.window) && t.window[t.written].ended; t.written++ {
		pos := t.first + t.written
		if t.tail > 0 && !t.over && pos+t.tail > t.last {
			break
		}
		r := &t.window[t.written]
		if _, err := t.w.Write(r.before); err != nil {
			return err
		}
		counted := pos >= t.warmup && (t.tail == 0 || pos+t.tail <= t.last)
		if _, err := t.w.Write(t.appendEnd(r.text, counted)); err != nil {
			return err
		}
		*r = jobRow{ended: true} // free its text
	}
	if 2*t.written > len(t.window) { // not every time, or long queues would cost the square of their length
		t.window = t.window[:copy(t.window, t.window[t.written:])]
		t.first, t.written = t.first+t.written, 0
	}
	return nil
}

// appendIdentity appends what is known of a job when it is read.
func appendIdentity(b []byte, j *traces.Job) []byte {
	for _, s := range [...]string{j.ID, j.User, j.VC} {
		b = append(csv.AppendText(b, s), ',')
	}
	b = traces.AppendDecimal(b, int64(j.Milli()), 3)
	return traces.AppendSeconds(append(b, ','), j.Submit)
}

// appendRest appends the other columns of a job. t is nil if it was not simulated.
func appendRest(b []byte, submit, work time.Duration, t *jobTimes, state string) []byte {
	if t == nil {
		t = &jobTimes{first: -1, finish: -1}
	}
	finished := t.finish >= 0
	cell := func(has bool, d time.Duration) {
		if b = append(b, ','); has {
			b = traces.AppendSeconds(b, d)
		}
	}
	jct := t.finish - submit
	cell(t.first >= 0, t.first)
	cell(finished, t.finish)
	cell(true, work)
	cell(finished, jct-t.ran)
	cell(finished, jct)
	if b = append(b, ','); finished && work > 0 {
		b = strconv.AppendFloat(b, float64(jct)/float64(work), 'f', -1, 64)
	}
	b = strconv.AppendInt(append(b, ','), int64(t.preemptions), 10)
	b = strconv.AppendInt(append(b, ','), int64(t.migrations), 10)
	return append(append(b, ','), state...)
}

// appendEnd appends the columns that not every table has, and ends the row.
func (t *jobTable) appendEnd(b []byte, counted bool) []byte {
	if t.cuts() {
		if counted {
			b = append(b, ",yes"...)
		} else {
			b = append(b, ",no"...)
		}
	}
	return append(t.appendPolicy(b), '\n')
}

// appendPolicy appends the run's policy if there are several runs.
func (t *jobTable) appendPolicy(b []byte) []byte {
	if t.several {
		b = append(append(b, ','), t.policy...)
	}
	return b
}
