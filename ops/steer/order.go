package steer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"clustergym/internal/plain"
	"clustergym/live"
	"clustergym/simulator/sim"
)

// ordered returns the queue in the policy's order, and notes it in the line if it has changed. Jobs for which there was
// no time keep the order that they have, after the others.
func (l *loop) ordered(ctx context.Context, s *live.Snapshot, starts []Start) ([]Ranked, error) {
	var jobs []sim.Job
	decided := 0
	if _, err := l.think(func() (_ []Start, err error) {
		jobs, decided, err = l.policy.Order(ctx, l.Top, starts)
		return nil, err
	}); err != nil {
		return nil, err
	}
	v := l.policy.Env.View()
	list := make([]Ranked, 0, len(jobs))
	first := 0 // of those that are not decided
	for i, j := range jobs {
		id := v.Trace(j).ID
		if x := s.Job(id); x != nil && x.State == live.Waiting {
			list = append(list, Ranked{id, x.Rank})
		}
		if i < decided {
			first = len(list)
		}
	}
	if first < min(l.Top, len(list)) {
		l.hurried(fmt.Sprintf("the policy had time to order %d of %s", first, plain.Count(len(list), "job", "jobs")))
		slices.SortStableFunc(list[first:], func(a, b Ranked) int { return cmp.Compare(b.Score, a.Score) })
	}
	var text strings.Builder
	for i := range list {
		text.WriteString(list[i].ID)
		text.WriteByte('\n')
	}
	if sum := sha256.Sum256([]byte(text.String())); string(sum[:]) != l.order {
		l.order, l.line.Order = string(sum[:]), list
	}
	return list, nil
}

// rank writes what has changed in the order.
func (l *loop) rank(ctx context.Context, s *live.Snapshot, starts []Start) error {
	list, err := l.ordered(ctx, s, starts)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(r Ranked) bool { return l.spared(r.ID) })
	top := min(l.Top, len(list))
	actions := Rerank(list[:top])
	for _, r := range list[top:] {
		if r.Score != 0 {
			actions = append(actions, live.Action{Op: live.RankJob, Job: r.ID})
		}
	}
	_, err = l.act(ctx, s, actions)
	return err
}
