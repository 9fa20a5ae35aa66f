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
	snapNode  = 3 * 8
)

// AppendSnapshot appends the state of the run to dst and returns the longer slice. It may be called between
// decisions at a point.
func (s *Simulator) AppendSnapshot(dst []byte) []byte {
	start := len(dst)
	b := snap.Begin(dst, snapshotMagic)
	b = snap.U64(b, s.fingerprint())
	b = snap.U64(b, s.rows)
	for _, v := range []int64{s.now, s.read, s.arrived, s.ended, s.seq, s.timer, s.points} {
		b = snap.Int(b, int(v))
	}
	for _, v := range []bool{s.coming, s.waited, s.begun, s.over} {
		b = snap.Bool(b, v)
	}
	b = snap.Int(b, len(s.jobs))
	for i := range s.jobs {
		st := &s.jobs[i]
		gang := 0
		if st.state == Running {
			gang = st.req.GPUs
		}
		for _, v := range [...]int64{
			st.row, st.pos, st.since, st.start, st.first, st.ran, st.finish, st.changed,
			int64(st.stops), int64(st.state), int64(gang),
		} {
			b = snap.Int(b, int(v))
		}
		b = snap.F64(b, st.left)
		b = snap.F64(b, st.rate)
		b = snap.Bool(b, st.sized)
		b = snap.Bool(b, st.more)
		if st.more {
			b = s.more[i].append(b)
		}
		b = appendGPUs(b, st.gpus)
	}
	for _, list := range [][]Job{s.waiting, s.running, s.spare, s.dead} {
		b = snap.Int(b, len(list))
		for _, j := range list {
			b = snap.Int(b, int(j))
		}
	}
	b = snap.Int(b, s.gone)
	for _, j := range s.running {
		b = snap.Int(b, int(s.finishes[s.jobs[j].heap].seq))
	}
	for _, events := range [][]Event{s.point.Events, s.events} {
		b = snap.Int(b, len(events))
		for _, e := range events {
			b = snap.Int(b, int(e.At))
			b = snap.Int(b, int(e.Kind))
			b = snap.Int(b, int(e.Job))
			b = snap.Int(b, int(e.Node))
			b = snap.Int(b, int(e.N))
			b = appendGPUs(b, e.GPUs)
		}
	}
	// In the order of the heap, so that restoring gives the same heap.
	if s.nodes.on {
		for _, e := range s.nodes.pending {
			b = snap.Int(b, int(e.node))
			b = snap.Int(b, int(e.at))
			b = snap.Int(b, int(s.nodes.draws[e.node]))
		}
	}
	if s.forecasts.by != nil {
		b = s.forecasts.append(b, len(s.jobs))
	}
	return snap.Seal(b, start)
}

func (m *jobMore) append(b []byte) []byte {
	for _, v := range [...]int64{m.begun, m.owed, m.held, int64(m.fails), int64(m.moves), int64(m.sizes)} {
		b = snap.Int(b, int(v))
	}
	b = snap.F64(b, m.saved)
	b = snap.F64(b, m.lost)
	b = snap.U64(b, m.area.hi)
	return snap.U64(b, m.area.lo)
}

func appendGPUs(b []byte, gpus []cluster.GPU) []byte {
	b = snap.Int(b, len(gpus))
	for _, g := range gpus {
		b = snap.Int(b, int(g))
	}
	return b
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
	return rng.Hash(fmt.Sprintf("%s %v %s %+v", settings, s.cfg.Interference != nil, name, s.cluster.Spec()))
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
