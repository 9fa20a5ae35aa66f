package sim

import (
	"fmt"
	"strings"

	"clustergym/internal/rng"
	"clustergym/internal/snap"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// A snapshot holds what cannot be read again: the clock, the lists with their order, and for every live job its row in
// the stream and its state. The jobs' trace data is read again from the stream; a hash of the rows read so far
// identifies them.
const snapshotMagic = "CGsim2"

// snapJob and snapEvent are the minimum sizes of a job and an event in bytes.
const (
	snapJob   = 14*8 + 2
	snapEvent = 6 * 8
)

// AppendSnapshot appends the state of the run to dst and returns the longer slice. It may be called between
// decisions at a point.
func (s *Simulator) AppendSnapshot(dst []byte) []byte {
	start := len(dst)
	p := saved{
		rows: s.rows, now: s.now, read: s.read, arrived: s.arrived, ended: s.ended, seq: s.seq, timer: s.timer,
		points: s.points,
		coming: s.coming, waited: s.waited, begun: s.begun, over: s.over, jobs: s.jobs, more: s.more,
		lists: [4][]Job{s.waiting, s.running, s.spare, s.dead}, gone: s.gone, events: [2][]Event{s.point.Events, s.events},
	}
	for _, j := range s.running {
		p.seqs = append(p.seqs, s.seqOf(j))
	}
	if s.nodes.on {
		for _, e := range s.nodes.pending {
			p.nodes = append(p.nodes, savedNode{int64(e.node), e.at, s.nodes.draws[e.node]})
		}
	}
	if f := &s.forecasts; f.by != nil {
		p.forecasts = savedForecasts{f.by.AppendSnapshot(nil), f.of[:len(s.jobs)]}
	}
	c := snap.Appender(snap.U64(snap.Begin(dst, snapshotMagic), s.fingerprint()))
	p.code(c, s)
	return snap.Seal(c.Appended(), start)
}

// code appends p to a snapshot of s, or reads it from one.
func (p *saved) code(c *snap.Codec, s *Simulator) {
	c.U64(&p.rows)
	snap.Ints(c, &p.now, &p.read, &p.arrived, &p.ended, &p.seq, &p.timer, &p.points)
	c.Bool(&p.coming, &p.waited, &p.begun, &p.over)
	snap.List(c, &p.jobs, snapJob, func(i int, st *jobState) {
		gang := int64(0)
		if st.state == Running {
			gang = int64(st.req.GPUs)
		}
		snap.Ints(c, &st.row, &st.pos, &st.since, &st.start, &st.first, &st.ran, &st.finish, &st.changed)
		snap.Ints(c, &st.stops)
		snap.Ints(c, &st.state)
		snap.Ints(c, &gang)
		c.F64(&st.left, &st.rate)
		c.Bool(&st.sized, &st.more)
		if c.Reads() {
			p.size, p.more = append(p.size, gang), append(p.more, jobMore{})
		}
		if st.more {
			p.more[i].code(c)
		}
		codeGPUs(c, &st.gpus)
	})
	for k := range p.lists {
		snap.List(c, &p.lists[k], 8, func(_ int, j *Job) { snap.Ints(c, j) })
	}
	snap.Ints(c, &p.gone)
	if c.Reads() {
		p.seqs = make([]int64, len(p.lists[1]))
	}
	for i := range p.seqs {
		snap.Ints(c, &p.seqs[i])
	}
	for k := range p.events {
		snap.List(c, &p.events[k], snapEvent, func(_ int, e *Event) {
			snap.Ints(c, &e.At)
			snap.Ints(c, &e.Kind)
			snap.Ints(c, &e.Job)
			snap.Ints(c, &e.Node, &e.N)
			codeGPUs(c, &e.GPUs)
		})
	}
	if c.Reads() && s.cfg.Failures.MTBF > 0 {
		p.nodes = make([]savedNode, s.cluster.Nodes())
	}
	for i := range p.nodes { // in the order of the heap, so that restoring gives the same heap
		n := &p.nodes[i]
		snap.Ints(c, &n.node, &n.at, &n.draws)
	}
	if s.forecasts.by != nil {
		p.forecasts.code(c, len(p.jobs))
	}
}

func (m *jobMore) code(c *snap.Codec) {
	snap.Ints(c, &m.begun, &m.owed, &m.held)
	snap.Ints(c, &m.fails, &m.moves, &m.sizes)
	c.F64(&m.saved, &m.lost)
	c.U64(&m.area.hi, &m.area.lo)
}

func codeGPUs(c *snap.Codec, gpus *[]cluster.GPU) {
	snap.List(c, gpus, 8, func(_ int, g *cluster.GPU) { snap.Ints(c, g) })
}

// fingerprint distinguishes configurations and clusters; fmt prints maps in order of their keys.
func (s *Simulator) fingerprint() uint64 {
	cfg := s.cfg
	cfg.Interference = nil // its address differs between processes
	name := ""
	if n, ok := s.cfg.Interference.(fmt.Stringer); ok {
		name = n.String()
	}
	if s.cfg.Predictor != nil {
		cfg.Predictor = nil
		name += " " + s.cfg.Predictor.String()
	}
	// Runs without a predictor have the fingerprint that they had before there were predictors.
	settings := strings.Replace(fmt.Sprintf("%+v", cfg), " Predictor:<nil>", "", 1)
	return rng.Hash(fmt.Sprintf("%s %v %s %s", settings, s.cfg.Interference != nil, name, described(s.cluster.Spec())))
}

// described returns a cluster as a fingerprint has it. What a cluster does not use of what clusters could not be given
// before is left out.
func described(spec cluster.Spec) string {
	return strings.NewReplacer(" Literal:false", "", " Hosts:[]", "", " Names:[]", "").Replace(fmt.Sprintf("%+v", spec))
}

// RestoreSnapshot continues from src, a snapshot of a simulator with the same configuration and cluster. jobs is the
// same stream of jobs from its beginning. src may be hostile: if it cannot be restored, RestoreSnapshot returns
// ErrSnapshot and changes nothing but jobs' position.
func (s *Simulator) RestoreSnapshot(src []byte, jobs traces.Stream) error {
	if s.role == forks {
		return errFork
	}
	n, err := New(s.cfg, s.cluster.Spec())
	if err != nil {
		return err
	}
	if err := n.restore(src, jobs); err != nil {
		return fmt.Errorf("%w: %v", ErrSnapshot, err)
	}
	*s = *n
	s.look()
	return nil
}
