package sched

import (
	"errors"
	"fmt"

	"clustergym/env"
	"clustergym/internal/snap"
)

// Stamp is what a sealed snapshot names before the episode and its actions, for environments without the simulator of
// clusters: it restores into environments of equal settings and workload only.
type Stamp struct {
	ID string
	// Magics are the first bytes where episodes are generated, and where they are of a workload.
	Magics [2]string
	// Settings appends what tells settings apart to a snapshot, and Reads reports whether r has the same.
	Settings func(b []byte) []byte
	Reads    func(r *snap.Reader) bool
	Workload string // digest of the workload, "" = episodes are generated
	Tasks    bool   // episodes have tasks
}

func (m *Stamp) magic() string {
	if m.Workload != "" {
		return m.Magics[1]
	}
	return m.Magics[0]
}

// AppendStamped is AppendSnapshot with a stamp.
func (s *Shell) AppendStamped(dst []byte, m *Stamp) ([]byte, error) {
	if err := s.Current(); err != nil {
		return dst, err
	}
	ep := &s.record.Episode
	b := m.Settings(snap.Begin(dst, m.magic()))
	if m.Workload != "" {
		b = snap.String(b, m.Workload)
		b = snap.Int(b, ep.Window)
		b = snap.String(b, ep.Split)
	}
	b = snap.U64(b, ep.Seed)
	if m.Tasks {
		b = snap.Int(b, len(ep.Task))
		for _, v := range ep.Task {
			b = snap.F64(b, v)
		}
	}
	b = snap.Int(b, len(s.record.Actions))
	for _, a := range s.record.Actions {
		b = snap.Int(b, int(a))
	}
	return snap.Seal(b, len(dst)), nil
}

// RestoreStamped is RestoreSnapshot with a stamp.
func (s *Shell) RestoreStamped(e env.Env, src []byte, m *Stamp, ts *env.TimeStep) error {
	began := s.Current()
	if errors.Is(began, env.ErrClosed) {
		return began
	}
	to, err := m.parse(src)
	if err != nil {
		return fmt.Errorf("%w: %s: %v", env.ErrSnapshot, m.ID, err)
	}
	if err := s.Replay(e, to, ts); err != nil {
		if began != nil {
			s.Break() // there is no episode to return to
		}
		return fmt.Errorf("%w: %s: impossible state", env.ErrSnapshot, m.ID)
	}
	return nil
}

func (m *Stamp) parse(src []byte) (to Record, err error) {
	r, err := snap.Open(src, m.magic())
	if err != nil {
		return to, err
	}
	if !m.Reads(&r) {
		return to, errors.New("of other settings")
	}
	ep := env.Episode{Window: -1}
	if m.Workload != "" {
		if r.String() != m.Workload {
			return to, errors.New("of another workload")
		}
		ep.Window, ep.Split = r.Int(), r.String()
	}
	ep.Seed = r.U64()
	if m.Tasks {
		for range r.Count(8) {
			ep.Task = append(ep.Task, r.F64())
		}
	}
	to = Record{Episode: ep, Actions: make([]int32, r.Count(8))}
	for i := range to.Actions {
		a := r.Int()
		if to.Actions[i] = int32(a); int(int32(a)) != a {
			return to, errors.New("impossible state")
		}
	}
	return to, r.Done()
}
