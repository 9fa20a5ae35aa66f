package steer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/live"
	"clustergym/ops/steer/mirror"
)

// since returns how long ago, by our own clock, Now showed a time.
func (l *loop) since(t time.Time) time.Duration {
	d := l.Now().Sub(t)
	if l.Fast > 0 {
		return time.Duration(float64(d) / l.Fast)
	}
	return d
}

// during returns how long Now's clock runs while ours runs for d.
func (l *loop) during(d time.Duration) time.Duration {
	if l.Fast > 0 {
		return max(time.Millisecond, time.Duration(float64(d)*l.Fast))
	}
	return d
}

// oddAnswers is how many answers in a row that nobody understands end the loop.
const oddAnswers = 3

// observe asks the cluster.
func (l *loop) observe(ctx context.Context) (*live.Snapshot, error) {
	within, stop := context.WithTimeout(ctx, l.Timeout)
	defer stop()
	begun := l.Now()
	s, err := l.Cluster.Observe(within)
	l.spent.read += l.since(begun)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: no answer within %v", live.ErrUnreachable, l.Timeout)
	}
	if err == nil || errors.Is(err, live.ErrUnreachable) || errors.Is(err, live.ErrDenied) ||
		errors.Is(err, live.ErrOver) {
		if l.odd = 0; err == nil {
			l.answered = true
			l.fallen(s)
			l.steady(s)
		}
		return s, err
	}
	if l.odd++; l.odd < oddAnswers && l.answered { // it may have been caught in the middle of a change
		return nil, fmt.Errorf("%w for now: %w", live.ErrUnreachable, err)
	}
	return nil, err
}

// cycle is one look at the cluster, and what follows from it.
func (l *loop) cycle(ctx context.Context) error {
	l.line, l.spent = Line{}, spent{}
	err := l.look(ctx)
	if err != nil && len(l.line.Writes) > 0 { // what was written is told in any case
		l.remark(err.Error())
		err = errors.Join(err, l.Log.Write(&l.line))
	}
	return err
}

func (l *loop) look(ctx context.Context) error {
	begun := l.Now()
	s, err := l.observe(ctx)
	if err != nil {
		return err
	}
	l.line = Line{At: l.Now(), Cluster: s.Cluster, Mode: l.Mode, DryRun: l.DryRun}
	if l.Mode == Gate {
		if err := l.ready(s, ""); err != nil {
			return err
		}
		held, err := l.hold(ctx, s)
		if err != nil {
			return err
		}
		if held {
			if s, err = l.observe(ctx); err != nil {
				return err
			}
		}
	}
	if err := l.show(s); err != nil {
		return err
	}
	l.line.Observed, l.line.Policy = s.At, l.policy.Name
	if l.Log != nil {
		l.line.Digest = digest(s)
	}
	l.tell(s)
	starts, err := l.think(func() ([]Start, error) { return l.policy.Starts(ctx) })
	if err != nil {
		return err
	}
	if l.policy.cut {
		l.hurried("the policy had time to choose " + plain.Count(len(starts), "start", "starts"))
	}
	l.line.Decisions, l.line.Scores, l.line.Rival = l.policy.Decisions()
	clear(l.chosen)
	v := l.policy.Env.View()
	for _, x := range starts {
		id := v.Trace(x.Job).ID
		l.chosen[id] = true
		l.line.Starts = append(l.line.Starts, StartLine{ID: id, Nodes: names(l.places(x))})
	}
	switch l.Mode {
	case Rank:
		err = l.rank(ctx, s, starts)
	case Gate:
		err = l.start(ctx, s, starts)
	case Shadow:
		if l.policy.NoOrder == "" {
			_, err = l.ordered(ctx, s, starts)
		}
	}
	if err != nil {
		return err
	}
	l.line.Took, l.line.Read, l.line.Think, l.line.Write = l.since(begun).Seconds(), l.spent.read.Seconds(),
		l.spent.think.Seconds(), l.spent.write.Seconds()
	l.Metrics.change(func(m *Metrics) {
		m.cycles, m.seconds, m.seen, m.spared = m.cycles+1, m.seconds+l.line.Took, s.At, l.leftOver(s)
		m.read, m.think, m.write = m.read+l.line.Read, m.think+l.line.Think, m.write+l.line.Write
		m.waiting, m.running, m.lost, m.starts = int64(l.line.Waiting), int64(l.line.Running), l.Log.Lost(),
			m.starts+int64(len(starts))
	})
	return l.Log.Write(&l.line)
}

// think asks the policy, which has a slice of the cycle for its answer.
func (l *loop) think(ask func() ([]Start, error)) ([]Start, error) {
	l.thinks = l.Now()
	starts, err := ask()
	l.spent.think += l.since(l.thinks)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.policy.Name, err)
	}
	return starts, nil
}

// hurried says that the policy had no time for everything; people are told once.
func (l *loop) hurried(what string) {
	what += fmt.Sprintf(" in %v (--think); the rest is left to the next look", l.Think)
	l.remark(what)
	if !l.rushed {
		l.rushed = true
		l.Note(what)
	}
}

// ready opens the policy, unless there is one, and finds the jobs that it cannot be asked about. changed says why there
// is none any more.
func (l *loop) ready(s *live.Snapshot, changed string) (err error) {
	if l.policy == nil {
		l.layout = mirror.LayoutOf(s)
		if len(l.layout.Nodes) == 0 {
			return fault.Errorf("%w: the cluster has no node with GPUs (in Kubernetes %s names what counts as GPUs)",
				live.ErrUnsupported, fault.Key("gpu-resource"))
		}
		p, err := l.Open(l.layout, s)
		if err != nil {
			if changed != "" {
				err = fmt.Errorf("%s: %w", changed, err)
			}
			return err
		}
		if l.Mode == Rank && p.NoOrder != "" {
			return fault.Errorf("%w: %s rank: %s", live.ErrUnsupported, fault.Key("mode"), p.NoOrder)
		}
		p.keeps, p.tells = l.gates(), l.Log != nil
		p.hurry = func() bool { return l.since(l.thinks) >= l.Think }
		if l.mirror, err = mirror.New(l.Mirror, l.layout, s); err != nil {
			return err
		}
		l.policy = p
		clear(l.unfit)
		if why := divided(s); why != "" {
			l.Note(why + divisions[l.Mode])
		}
	}
	l.fitting(s)
	return nil
}

// show tells the environment what the cluster says. Starts that it has been asked for count as carried out, until it is
// clear that they are not.
func (l *loop) show(s *live.Snapshot) error {
	changed := ""
	for again := false; ; again = true {
		if err := l.ready(s, changed); err != nil {
			return err
		}
		why, err := l.mirror.Show(l.policy.Env, sched.Following{}, l.kept(s))
		if errors.Is(err, mirror.ErrLayout) && !again {
			changed = err.Error()
			l.remark(changed + "; the policy begins anew")
			l.policy = nil
			continue
		}
		if why != nil {
			l.remark("what was known before does not go with what the cluster says: " + why.Error())
		}
		return err
	}
}

func (l *loop) remark(text string) {
	if l.line.Note != "" {
		l.line.Note += "; "
	}
	l.line.Note += text
}
