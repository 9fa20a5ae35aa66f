package workerplace

import (
	"fmt"
	"strings"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/rng"
	"clustergym/internal/snap"
)

// stamp says what e's snapshots name.
func (e *Env) stamp() *sched.Stamp {
	m := &sched.Stamp{
		ID: e.cfg.ID(), Magics: [2]string{"clustergym workerplace 1\n", "clustergym workerplace 2\n"}, Tasks: true,
		Settings: func(b []byte) []byte { return snap.U64(b, e.fingerprint()) },
		Reads:    func(r *snap.Reader) bool { return r.U64() == e.fingerprint() },
	}
	if e.work != nil {
		m.Workload = e.work.sha
	}
	return m
}

// fingerprint tells configurations apart. Without crowding, and in version 1, it is what it was before there were
// these, so that older snapshots stay valid.
func (e *Env) fingerprint() uint64 {
	text := strings.Replace(fmt.Sprintf("%+v", e.cfg), " Crowding:0 ", " ", 1)
	return rng.Hash(strings.TrimSuffix(text, " Drawn:false}") + map[bool]string{true: "", false: "}"}[e.cfg.Drawn])
}

// AppendSnapshot implements env.Snapshotter; before the first Reset there is nothing to save (env.ErrResetNeeded).
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) {
	return e.shell.AppendStamped(dst, e.stamp())
}

// RestoreSnapshot implements env.Snapshotter. Speeds that were put in must be the ones of then. A recorder does not see
// the intervals that are played again.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	rec := e.rec
	e.rec = nil
	defer func() { e.rec = rec }()
	return e.shell.RestoreStamped(e, src, e.stamp(), ts)
}
