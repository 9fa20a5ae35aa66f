package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"clustergym/live"
)

// room returns how many writes are allowed now.
func (l *loop) room() int {
	now := l.Now()
	l.writes = slices.DeleteFunc(l.writes, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	n := 1 << 30
	if l.PerCycle > 0 {
		n = l.PerCycle - len(l.line.Writes)
	}
	if l.PerMinute > 0 {
		n = min(n, l.PerMinute-len(l.writes))
	}
	return max(0, n)
}

// mayWrite renews the lease, and returns for how long writes may take.
func (l *loop) mayWrite() (within time.Duration, err error) {
	if !l.leased() {
		return l.Timeout, nil
	}
	if l.Guarded != nil {
		switch err := l.Guarded(); {
		case err != nil && l.gates():
			return 0, fmt.Errorf("nobody watches the lease: %w", err)
		case err != nil && !l.unseen: // ranks keep no job from starting
			l.unseen = true
			l.Note(fmt.Sprintf("nobody watches the lease (%v): ranks stay if steer is killed", err))
		}
	}
	if err := l.renew(); err != nil {
		return 0, err
	}
	if l.gates() {
		return min(l.Timeout, l.Lease.Left()/2), nil
	}
	return l.Timeout, nil
}

// act asks the cluster for as many of the actions as limits allow, and returns those that it has taken.
func (l *loop) act(ctx context.Context, s *live.Snapshot, actions []live.Action) (written []live.Action, err error) {
	if len(actions) == 0 {
		return nil, nil
	}
	if room := l.room(); len(actions) > room {
		l.remark(fmt.Sprintf("%d of %d writes wait for the next cycle", len(actions)-room, len(actions)))
		actions = actions[:room]
	}
	if l.DryRun {
		for _, a := range actions {
			l.line.Writes = append(l.line.Writes, WriteLine{Action: a.String()})
			l.Note("would " + a.String())
		}
		return nil, nil
	}
	if age := l.since(s.At); age > l.MaxAge {
		l.remark(fmt.Sprintf("nothing is written, because what the cluster says is %v old, and --max-age is %v",
			age.Round(time.Second), l.MaxAge))
		l.Metrics.change(func(m *Metrics) { m.stale++ })
		return nil, nil
	}
	within, err := l.mayWrite()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	denied, first := 0, ""
	begun := l.Now()
	results := l.Cluster.Act(ctx, actions)
	l.spent.write += l.since(begun)
	for i, r := range results {
		a := actions[i]
		l.writes = append(l.writes, l.Now())
		w := WriteLine{Action: a.String()}
		switch {
		case r.Err == nil:
			written = append(written, a)
			l.taken(a)
		case errors.Is(r.Err, live.ErrUnreachable):
			err = r.Err
		case errors.Is(r.Err, context.DeadlineExceeded), errors.Is(r.Err, context.Canceled):
			err = fmt.Errorf("%w: %w", live.ErrUnreachable, r.Err)
		case errors.Is(r.Err, live.ErrGone), errors.Is(r.Err, live.ErrNotYet):
		default:
			if denied++; denied == 1 {
				first = fmt.Sprintf("%v; %v", r.Err, l.refuse(a))
			} else {
				l.refuse(a)
			}
		}
		if r.Err != nil {
			w.Error = r.Err.Error()
		}
		l.line.Writes = append(l.line.Writes, w)
	}
	if denied > 0 {
		l.Note(fmt.Sprintf("%d of %d writes are refused: %s", denied, len(actions), first))
	}
	if denied == len(actions) && err == nil { // is it these jobs, or all?
		err = l.allowed(ctx)
	}
	l.Metrics.change(func(m *Metrics) {
		m.writes += int64(len(written))
		m.refused += int64(len(actions) - len(written))
	})
	return written, err
}
