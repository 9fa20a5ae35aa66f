package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/grow"
	"clustergym/internal/rng"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// State is the state of a job. Every job ends in exactly one state: Finished, or the one it has at the horizon.
type State uint8

// The states of a job that has arrived. A dropped job counts as ended.
const (
	Waiting State = iota
	Running
	Finished
	Dropped
)

func (s State) String() string { return [...]string{"waiting", "running", "finished", "dropped"}[s] }

// jobState is the changing state of a job. Times are nanoseconds since the origin.
type jobState struct {
	left    float64 // work left at since
	rate    float64 // of progress while running
	since   int64   // time as of which left holds and from which it decreases; after now during an overhead
	start   int64   // last start
	first   int64   // first start, -1 before it
	ran     int64   // time on GPUs, without the current stint
	finish  int64   // while running: when it will finish
	pos     int64   // position among the jobs that fit
	row     int64   // row in the stream
	changed int64   // the point of the last decision about it, 0 = none
	stops   int32   // number of preemptions
	heap    int32   // index in Simulator.finishes
	list    int32   // index in waiting or running
	asked   int32   // GPUs asked for; req has those of the current gang
	state   State
	talks   bool // its gang communicates between nodes (contention)
	spans   bool // it also communicates between racks
	speeds  bool // its model has its own speeds
	sized   bool // its gang has had a size other than asked for
	more    bool // it has an entry in Simulator.more
	req     cluster.Request
	gpus    []cluster.GPU
	other   []cluster.GPU // the gang's placement before the last; events may still show it
}

// jobMore is the state of a job that only some runs need. It is separate so that plain runs do not touch it.
type jobMore struct {
	base  float64 // rate if it were alone, in runs where rates depend on neighbours
	begun int64   // when its progress in this stint begins; checkpoints are counted from here
	saved float64 // work left at the last checkpoint, if there are any
	lost  float64 // progress lost, ns of work
	owed  int64   // overhead of the last stop, paid at the next start
	held  int64   // since when a gang of a size other than asked for has had its current size
	area  gpuTime // GPU-time of such a job until then

	fails, moves, sizes int32 // failures, migrations, resizes
}

// extra returns j's jobMore, and creates it empty if necessary. The pointer is valid until the next job gets one.
func (s *Simulator) extra(j Job) *jobMore {
	if !s.jobs[j].more {
		*grow.At(&s.more, j), s.jobs[j].more = jobMore{}, true
	}
	return &s.more[j]
}

// peek returns what extra would return, without changing state.
func (s *Simulator) peek(j Job) jobMore {
	if !s.jobs[j].more {
		return jobMore{}
	}
	return s.more[j]
}

// Simulator runs one workload on one cluster. It is not safe for concurrent use.
type Simulator struct {
	cfg     Config
	cluster *cluster.Cluster
	tree    bool
	ring    *ring       // nil unless Comm is ring
	links   *contention // nil unless Comm is contention
	models  bool        // gangs need a profile of their model
	dynamic bool        // rates depend on the neighbours
	stints  bool        // there are checkpoints or overheads
	view    View

	stream    traces.Stream
	inMemory  traces.Rows     // stream, whose jobs need not be copied; nil = they must be
	buffer    *traces.Job     // next, where jobs are copied
	next      *traces.Job     // read ahead
	nextReq   cluster.Request // its request
	coming    bool            // next is valid
	read      int64           // rows read from the stream, next included
	rows      uint64          // hash of these rows
	decisions uint64          // but Wait, for View.Decisions
	arrived   int64           // jobs that have arrived
	ended     int64           // jobs that have finished
	refused   Refused

	now      int64
	jobs     []jobState
	traced   []*traces.Job // trace data of jobs[i]; may be longer than jobs
	more     []jobMore     // of those jobs[i] that need it
	spare    []Job         // numbers to reuse
	dead     []Job         // numbers of ended jobs that an undelivered or current event still names; later moved to spare
	gone     int           // how many of dead the current point has reported; the next Advance moves them to spare
	waiting  []Job
	running  []Job
	finishes []finish
	seq      int64
	points   int64 // delivered so far
	timer    int64 // absolute, 0 = none
	waited   bool  // the current point was ended by Wait
	begun    bool  // there has been a point
	role     role
	over     bool
	err      error // error of the stream; the run cannot continue

	forecasts forecasts

	near    neighbours
	nodes   failures
	profile map[*traces.Profile][]float64 // speeds by the cluster's GPU types

	future *Future       // of a fork
	ahead  int           // jobs of future that have been read, next included
	gangs  []cluster.GPU // of a fork, or in imagination: the placements made since CopyFrom or Imagine

	point  Point
	events []Event // gathered since the last Advance began

	follow follow
}

// Refused counts the jobs that can never fit the cluster and names the first of them.
type Refused struct {
	Count int
	IDs   []string // at most 20
	GPUs  int      // the largest gang among them
	// GPUHours is what they ask for: run time × GPUs.
	GPUHours float64
	Why      cluster.Unfit
}

// New returns a simulator of an empty cluster. Call Reset before using it.
func New(cfg Config, spec cluster.Spec) (*Simulator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c, err := cluster.New(spec)
	if err != nil {
		return nil, err
	}
	s := &Simulator{cfg: cfg, cluster: c, buffer: new(traces.Job),
		stints: cfg.Checkpoint > 0 || cfg.Overhead != Overhead{}}
	if cfg.Predictor != nil {
		s.forecasts.use(cfg.Predictor.New())
	}
	s.look()
	if c.Pool() {
		if cfg.Failures.MTBF > 0 {
			return nil, fault.New("failures.mtbf", cfg.Failures.MTBF, "0s on a counter, which has no nodes that could fail")
		}
		return s, nil // its GPUs have no place, so nothing depends on placement
	}
	switch cfg.Comm {
	case "tree":
		s.tree = true
	case "ring":
		s.ring = newRing(c, cfg.Ring)
	case "contention":
		s.links = newContention(c, cfg.Contention)
	}
	s.models = s.ring != nil || s.links != nil
	s.dynamic = s.links != nil || cfg.Interference != nil
	s.near.always = s.dynamic || cfg.Failures.MTBF > 0
	return s, nil
}

// Reset begins a run of jobs on the empty cluster. The stream is read one job ahead. If it is a traces.Rows, its jobs
// are not copied, so they must not change before the next Reset.
func (s *Simulator) Reset(jobs traces.Stream) error {
	if s.role == forks {
		return errFork
	}
	s.cluster.Reset()
	s.stream, s.coming, s.read, s.rows, s.arrived, s.ended = jobs, false, 0, 0, 0, 0
	s.refused = Refused{IDs: s.refused.IDs[:0]}
	s.now, s.seq, s.timer, s.points = 0, 0, 0, 0
	s.waited, s.begun, s.over, s.err = false, false, false, nil
	s.endFollowing()
	s.jobs = s.jobs[:0]
	rows, inMemory := jobs.(traces.Rows)
	if inMemory != (s.inMemory != nil) {
		s.traced = nil // of the jobs' owner, or a copy
	}
	s.inMemory, s.next = rows, s.buffer
	s.spare, s.dead, s.gone = s.spare[:0], s.dead[:0], 0
	s.waiting, s.running, s.finishes = s.waiting[:0], s.running[:0], s.finishes[:0]
	s.events, s.point = s.events[:0], Point{Events: s.point.Events[:0]}
	s.resetNeighbours()
	s.resetFailures()
	s.forecasts.reset(jobs)
	return s.readNext()
}

// readNext reads the next job that can fit the cluster at all.
func (s *Simulator) readNext() error {
	s.coming = false
	if s.role == forks {
		s.foresee()
		return nil
	}
	before := s.next.Submit
	for {
		err := s.fetch()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			s.err = fmt.Errorf("sim: job %d: %w", s.read, err)
			return s.err
		}
		if err := s.next.CheckTimes(); err != nil {
			s.err = fmt.Errorf("sim: job %d: %w", s.read, err)
			return s.err
		}
		if s.read > 0 && s.next.Submit < before {
			s.err = fmt.Errorf("sim: job %d (%s) is submitted at %v after one at %v: jobs must come in order of submit", s.read,
				s.next.ID, s.next.Submit, before)
			return s.err
		}
		before = s.next.Submit
		s.read++
		s.rows = rng.Mix(s.rows ^ uint64(s.next.Submit) ^ uint64(s.next.Work)<<20 ^ uint64(s.next.Milli())<<44)
		req, ok := s.cluster.Request(s.next)
		if ok {
			if s.models {
				if err := s.checkProfile(); err != nil {
					s.err = err
					return err
				}
			}
			s.nextReq, s.coming = req, true
			return nil
		}
		s.refuse()
	}
}

// refuse counts the job read ahead, which can never fit the cluster.
func (s *Simulator) refuse() {
	s.refused.Count++
	s.refused.GPUHours += s.next.GPUHours()
	s.refused.Why.Count(s.cluster, s.next)
	s.refused.GPUs = max(s.refused.GPUs, s.next.GPUs)
	if len(s.refused.IDs) < 20 {
		s.refused.IDs = append(s.refused.IDs, s.next.ID)
	}
}

// fetch makes the stream's next job s.next.
func (s *Simulator) fetch() error {
	if s.inMemory == nil {
		return s.stream.Next(s.next)
	}
	j := s.inMemory.Row()
	if j == nil {
		return io.EOF
	}
	s.next = j
	return nil
}

// Refused returns which of the jobs read so far can never fit the cluster.
func (s *Simulator) Refused() Refused { return s.refused }

// look makes the view one of s.
func (s *Simulator) look() { s.view = View{s, s.cluster, &s.waiting, &s.running} }

// View returns the read-only view of the simulator. Every call returns the same View.
func (s *Simulator) View() *View { return &s.view }

// arrive turns the job read ahead into a waiting one.
func (s *Simulator) arrive() error {
	s.admit()
	return s.readNext()
}

// admit is arrive without reading the next job. It returns the job's number.
func (s *Simulator) admit() Job {
	var j Job
	if n := len(s.spare); n > 0 {
		j, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		j = Job(len(s.jobs))
		if len(s.jobs) < cap(s.jobs) { // keep the GPU list of an earlier run
			s.jobs = s.jobs[:j+1]
		} else {
			s.jobs = append(s.jobs, jobState{})
		}
		if int(j) >= len(s.traced) {
			s.traced = s.moreRows()
		}
	}
	s.keepRow(int(j))
	st := &s.jobs[j]
	gpus, other := st.gpus[:0], st.other
	if s.role == forks {
		gpus, other = nil, nil // those of the original
	}
	*st = jobState{}
	st.left, st.since, st.first = float64(s.next.Work), s.now, -1
	st.pos, st.row = s.arrived, s.read-1
	st.req, st.asked, st.speeds = s.nextReq, int32(s.nextReq.GPUs), s.ownSpeeds()
	st.gpus, st.other = gpus, other
	s.arrived++
	s.addTo(&s.waiting, j)
	if s.forecasts.told {
		s.submitted(j)
	}
	s.events = append(s.events, Event{At: time.Duration(s.now), Kind: Submit, Job: j})
	return j
}

// keepRow makes the job read ahead the trace data of job j.
func (s *Simulator) keepRow(j int) {
	if s.role == forks || s.inMemory != nil {
		s.traced[j] = s.next
	} else {
		*s.traced[j] = *s.next
	}
}

// moreRows returns s.traced with room for more jobs. They come in blocks, which never move: forks point to them.
func (s *Simulator) moreRows() []*traces.Job {
	list := s.traced
	if s.role == forks || s.inMemory != nil {
		return append(list, nil)
	}
	block := make([]traces.Job, max(64, len(list)))
	list = slices.Grow(list, len(block))
	for i := range block {
		list = append(list, &block[i])
	}
	return list
}

func (s *Simulator) addTo(list *[]Job, j Job) {
	s.jobs[j].list = int32(len(*list))
	*list = append(*list, j)
}

func (s *Simulator) removeFrom(list *[]Job, j Job) {
	l := *list
	i, last := s.jobs[j].list, l[len(l)-1]
	l[i] = last
	s.jobs[last].list = i
	*list = l[:len(l)-1]
}

// finishAt returns since + ⌈left/rate⌉, saturating.
func finishAt(since int64, left, rate float64) int64 {
	d := math.Ceil(left / rate)
	if d >= float64(math.MaxInt64-since) {
		return math.MaxInt64
	}
	return since + int64(d)
}

// Run lets sch decide from the first event to the end of the run, and passes every point to the observers before it
// asks sch. Reset must have been called.
func Run(ctx context.Context, s *Simulator, sch Scheduler, observers ...Observer) error {
	v := s.View()
	sch.Reset(v)
	var d Decision
	for {
		p, err := s.Advance(ctx)
		if errors.Is(err, ErrDone) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, o := range observers {
			if err := o.Observe(v, p); err != nil {
				return err
			}
		}
		if v.Over() {
			continue
		}
		if err := Decide(s, sch, p, &d, nil); err != nil {
			return err
		}
	}
}

// Decide lets sch make its decisions at point p, up to and including Wait, and applies each. d is scratch space, so
// that callers do not allocate. If applied is not nil, Decide calls it with every decision after s has applied it.
func Decide(s *Simulator, sch Scheduler, p *Point, d *Decision, applied func(*Decision)) error {
	v := s.View()
	for {
		d.Op, d.GPUs, d.Until = Wait, d.GPUs[:0], 0
		if err := sch.Decide(v, p, d); err != nil {
			return err
		}
		if err := s.Apply(d); err != nil {
			return err
		}
		if applied != nil {
			applied(d)
		}
		if d.Op == Wait {
			return nil
		}
	}
}

// Scheduler is a heuristic or any other policy over the whole simulator: it sees the whole queue and may make any
// decision.
type Scheduler interface {
	Reset(v *View)
	// Decide fills d, whose Op is Wait on entry. It is called repeatedly at the same point until it waits.
	Decide(v *View, p *Point, d *Decision) error
}

// Observer receives every point, including the last.
type Observer interface {
	Observe(v *View, p *Point) error
}
