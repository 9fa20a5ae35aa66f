package dagplace

import (
	"fmt"
	"strings"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/snap"
)

// stamp says what e's snapshots name.
func (e *Env) stamp() *sched.Stamp {
	m := &sched.Stamp{
		ID: ID, Magics: [2]string{"clustergym dagplace 1\n", "clustergym dagplace 2\n"},
		Settings: func(b []byte) []byte { return snap.String(b, e.settings()) },
		Reads:    func(r *snap.Reader) bool { return r.String() == e.settings() },
	}
	if e.work != nil {
		m.Workload = e.work.sha
	}
	return m
}

// settings are the settings in words. Hopes came after the first snapshots, which it leaves valid.
func (e *Env) settings() string {
	c := e.cfg
	if c.Hopes == "random" {
		c.Hopes = ""
	}
	return strings.Replace(fmt.Sprintf("%+v", c), " Hopes: ", " ", 1)
}

// AppendSnapshot appends the state of the episode: its seed and actions, for everything follows from them. Before the
// first Reset there is none (env.ErrResetNeeded).
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) {
	return e.shell.AppendStamped(dst, e.stamp())
}

// RestoreSnapshot continues from src by playing its actions again.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	return e.shell.RestoreStamped(e, src, e.stamp(), ts)
}
