package schedulers

import (
	"errors"
	"fmt"
	"time"

	"clustergym/simulator/schedulers/rounds"
	"clustergym/simulator/sim"
)

// ErrNoProgress is returned by policies that stop jobs again and again before these get anywhere, so that the run would
// not end.
var ErrNoProgress = errors.New("jobs are stopped before they get anywhere")

const (
	// manyStops is how many stops without the end of any job make the policy look at what they have brought.
	manyStops = 10_000
	// tooMany is how many more of them a run may need if hardly any of the time that jobs run is progress.
	tooMany  = 2_000_000
	hardlyBy = 0.01
)

// turns watches over a policy that stops, moves or resizes running jobs. If a restart costs as much as a turn brings,
// no job ever ends, and the run continues until the clock's limit.
type turns struct {
	stops     int
	ended     int // jobs that have ended
	begun     bool
	done, ran float64 // of the jobs in the system when stops was 0
}

func (t *turns) reset() { *t = turns{} }

// see takes note of a decision that is about to be made.
func (t *turns) see(v *sim.View, c *Config, d *sim.Decision) error {
	switch d.Op {
	case sim.PreemptJob, sim.MigrateJob, sim.ResizeJob:
	default:
		return nil
	}
	if n := v.Ended(); n != t.ended || !t.begun {
		*t = turns{ended: n, begun: true}
		t.done, _, t.ran = t.account(v)
	}
	if t.stops++; t.stops < manyStops || t.stops < 50*(len(v.Waiting())+len(v.Running())) || v.Horizon() > 0 {
		return nil
	}
	done, left, ran := t.account(v)
	progress, spent := done-t.done, ran-t.ran
	slow := progress <= 0 || progress < hardlyBy*spent && float64(t.stops)*left/progress > tooMany
	stops := t.stops
	if t.stops, t.done, t.ran = 0, done, ran; !slow || spent <= 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: %d stops have brought %v of work in %v on GPUs, because %s; want cheaper restarts%s",
		c.Name(), ErrNoProgress,
		stops, time.Duration(max(0, progress)), time.Duration(spent), costs(v, c), longerTurns(c))
}

// account adds up the progress of the jobs in the system, what is left of them, and the time that they have run.
func (t *turns) account(v *sim.View) (done, left, ran float64) {
	for _, list := range [...][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			l := v.Left(j)
			done += float64(v.Trace(j).Work) - l
			left += l
			ran += float64(v.Ran(j))
		}
	}
	return done, left, ran
}

// turn returns how long the policy lets jobs run at a time, and the key that says so; 0 if they are stopped for other
// reasons.
func (c *Config) turn() (d time.Duration, key string) {
	if d := rounds.Length(c.Order, c.Turns); d > 0 {
		return d, "round"
	}
	switch c.Order {
	case "dally", "delay-las", "tiresias-lease":
		if c.Lease == 0 {
			return time.Hour, "lease"
		}
		return c.Lease, "lease"
	case "gittins-2d":
		return c.Quantum, "quantum"
	}
	return 0, ""
}

func costs(v *sim.View, c *Config) string {
	restart, checkpoint := v.Restart()
	text := fmt.Sprintf("a restart costs %v", restart)
	if checkpoint > 0 {
		text += fmt.Sprintf(", a stop the progress since the last checkpoint (one every %v)", checkpoint)
	}
	if turn, _ := c.turn(); turn > 0 {
		text += fmt.Sprintf(" and a turn lasts %v", turn)
	}
	return text
}

func longerTurns(c *Config) string {
	if _, key := c.turn(); key != "" {
		return " or longer turns (policy." + key + ")"
	}
	return ""
}
