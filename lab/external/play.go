package external

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"clustergym/internal/plain"
	"clustergym/lab/simulate"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// play is one run of the workload. It is the sim.Scheduler of its simulator: what it decides, the client has sent.
type play struct {
	*simulate.Play
	v   *sim.View
	ask string // when the client is asked
	// limited says that trace.limit stands for the requested times that a log lacks, so that no estimate is a run time.
	limited bool
	begun   bool
	point   *sim.Point
	asks    bool   // the client is to decide at point
	over    bool   // it has ended, in one way or the other
	told    bool   // that it has ended
	failed  string // why it has ended before its time, "" = it has not

	sent           decisions
	next           int       // of sent, to be decided
	waits          bool      // all of sent are decided, and the point ends
	numbs          []sim.Job // by position: the job's number, -1 = it has left
	ends           []int64   // by position: when the running job is expected to end, ns
	queue, running []int32   // positions of the waiting and of the running jobs, ascending
	d              sim.Decision
	more           []cluster.GPU // scratch: GPUs that a gang gets besides its own

	news news
}

var _ sim.Scheduler = (*play)(nil)

func newPlay(p *simulate.Play, args *Args, ask string) *play {
	x := &play{Play: p, v: p.Sim.View(), ask: ask, limited: args.Trace.Limit > 0}
	if p.Policy != nil {
		p.Policy.Reset(x.v)
	}
	return x
}

// slice is for how long a request advances a play that asks nothing before it answers, so that no request takes too
// long.
const slice = 250 * time.Millisecond

// advance decides what the client has sent, and goes on to the next point at which it is asked, to the end, or until
// the time is over. Errors are the server's; what the client or the policy has done wrong ends the play.
func (p *play) advance(ctx context.Context, clock func() time.Duration) error {
	began := clock()
	for first := true; ; first = false {
		if !first && (p.news.large() || clock()-began > slice) {
			return nil // the next request goes on
		}
		if p.begun {
			if err := p.decide(); err != nil {
				p.fail(err)
				return nil
			}
		}
		point, err := p.Sim.Advance(ctx)
		switch {
		case errors.Is(err, sim.ErrDone):
			p.over = true
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			p.fail(err)
			return nil
		}
		p.begun, p.point = true, point
		if err := p.Counted.Observe(p.v, point); err != nil {
			return err
		}
		p.observe(point)
		if p.v.Over() {
			p.over = true
			return nil
		}
		if p.asks = p.Policy == nil && p.open(); p.asks {
			return nil
		}
	}
}

// open reports whether the client is to be asked at the present point.
func (p *play) open() bool {
	switch p.ask {
	case askAlways:
		return true
	case askRoom:
		return slices.ContainsFunc(p.v.Waiting(), p.v.Fits)
	}
	return len(p.v.Waiting()) > 0
}

// decide makes the decisions at the current point: the policy's, those that the client has sent, or none.
func (p *play) decide() error {
	if p.v.Over() {
		return nil
	}
	if p.Policy != nil {
		return sim.Decide(p.Sim, p.Policy, p.point, &p.d, nil)
	}
	if !p.asks {
		p.sent.reset()
	}
	p.asks, p.next, p.waits = false, 0, false
	err := sim.Decide(p.Sim, p, p.point, &p.d, nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sim.ErrWait):
		return fmt.Errorf("at %s: nothing is started although a job fits, nothing runs and none will arrive: the simulation "+
			"would never end", seconds(p.v.Now()))
	case p.waits:
		return fmt.Errorf("at %s: %w", seconds(p.v.Now()), err)
	}
	return fmt.Errorf("at %s, decision %d, to %s: %w", seconds(p.v.Now()), p.next, p.words(p.next-1), err)
}

// fail ends the play with an error.
func (p *play) fail(err error) {
	p.over, p.asks, p.failed = true, false, plain.Line(err.Error())
}

// Reset implements sim.Scheduler. A play begins once.
func (p *play) Reset(*sim.View) {}

// Decide implements sim.Scheduler.
func (p *play) Decide(v *sim.View, _ *sim.Point, d *sim.Decision) error {
	for p.next < len(p.sent.op) {
		i := p.next
		p.next++
		if done, err := p.one(v, i, d); done || err != nil {
			return err
		}
	}
	d.Op, d.Until, p.waits = sim.Wait, p.sent.until, true
	return nil
}

// seconds returns a simulated time as messages show it.
func seconds(t time.Duration) string { return fmt.Sprintf("%.15g s", t.Seconds()) }
