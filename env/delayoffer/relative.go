package delayoffer

import (
	"context"
	"time"

	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/delay"
	"clustergym/simulator/sim"
)

// baseline plays an episode's jobs by the timers before the agent does, for Config.Relative: the reward subtracts what
// it would have earned at each moment.
type baseline struct {
	plays *sched.Baseline
	rule  *delay.Delay
	line  []inSystem // by time
	at    int        // index in line of the last call of until
}

// inSystem is the number of jobs in the system from a time on.
type inSystem struct {
	from time.Duration
	jobs int
}

func newBaseline(cfg *Config, spec cluster.Spec) (*baseline, error) {
	plays, err := sched.NewBaseline(cfg.Simulator(), spec)
	if err != nil {
		return nil, err
	}
	rule, err := schedulers.NewDelay(cfg.Heuristic())
	return &baseline{plays: plays, rule: rule}, err
}

// play runs jobs until the last has finished.
func (b *baseline) play(ctx context.Context, jobs sched.Jobs) error {
	b.line, b.at = b.line[:0], 0
	return b.plays.Play(ctx, jobs, b.rule, b)
}

// Observe implements sim.Observer.
func (b *baseline) Observe(v *sim.View, p *sim.Point) error {
	b.line = append(b.line, inSystem{p.Now, v.Arrived() - v.Ended()})
	return nil
}

// until calls visit for each piece of [from, to) over which the number of jobs is constant and not 0. Calls must be in
// order of time.
func (b *baseline) until(from, to time.Duration, visit func(jobs int, from, to time.Duration)) {
	for ; b.at < len(b.line); b.at++ {
		end := to
		if b.at+1 < len(b.line) {
			end = min(end, b.line[b.at+1].from)
		}
		if begin := max(from, b.line[b.at].from); begin < end && b.line[b.at].jobs > 0 {
			visit(b.line[b.at].jobs, begin, end)
		}
		if b.at+1 == len(b.line) || b.line[b.at+1].from > to {
			return
		}
	}
}

// end returns when the last job finished.
func (b *baseline) end() time.Duration { return b.line[len(b.line)-1].from }
