package schedulers

import (
	"cmp"
	"slices"

	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// Plainly makes p decide as the straightforward implementation does, which computes everything anew at every point, if
// there is one: conservative back-filling and gittins-2d.
func Plainly(p Policy) {
	everywhere(p, func(s *Scheduler) {
		if s.rule.name == gittins2D.name {
			s.rule, s.state = plainly, nil
		}
		if b, ok := s.fill.(*conservative); ok {
			s.fill = &wholeProfile{conservative: b}
		}
	})
}

// wholeProfile is conservative back-filling that reserves for every job in line until nothing left in it could start,
// from a profile of all times, at every point at which a reservation may have changed.
type wholeProfile struct {
	*conservative
	least []int64 // by place in list: the least need from there on
}

func (b *wholeProfile) open(v *sim.View) {
	if b.ends.N != len(v.Running()) {
		b.ends.Rebuild(&b.s.est, v)
		b.forget()
	}
	if b.ends.Overdue(&b.s.est, v) || !b.steady {
		b.forget()
	}
	b.starts, b.turn, b.spots = b.starts[:0], 0, b.spots[:0]
	if !b.counted(v) {
		b.calm = false
		b.planAll(v)
		return
	}
	if b.calm && !b.s.freed.Any && int64(v.Now()) < b.until {
		return
	}
	b.until, b.room = queue.Never, queue.Never
	if b.nodes {
		b.ahead.CopyFrom(v.Cluster())
	}
	if len(b.lines[b.sole].trees) > 0 {
		b.reserveAll(v)
	}
	b.calm = true
}

func (b *wholeProfile) reserveAll(v *sim.View) {
	now, room := int64(v.Now()), b.roomNow(v)
	b.profile.Begin(now, room, &b.ends)
	b.list = b.list[:0]
	for _, t := range b.lines[b.sole].trees {
		b.list = b.tree.List(t.Root, b.list)
	}
	b.list = slices.DeleteFunc(b.list, func(j sim.Job) bool {
		return v.State(j) != sim.Waiting || v.Pos(j) != b.tree.Nodes[j].Pos
	})
	slices.SortFunc(b.list, func(i, j sim.Job) int {
		x, y := b.rankOf(int32(i)), b.rankOf(int32(j))
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Pos, y.Pos))
	})
	b.least = slices.Grow(b.least[:0], len(b.list))[:len(b.list)]
	least := int64(queue.Never)
	for i := len(b.list) - 1; i >= 0; i-- {
		least = min(least, b.tree.Nodes[b.list[i]].Need)
		b.least[i] = least
	}
	b.room, b.last = room, queue.Beginning
	for i, j := range b.list {
		if b.least[i] > room {
			return // no job from here on could start now
		}
		n := &b.tree.Nodes[j]
		at := b.reserve(n.Need, n.Time)
		b.last = b.rankOf(int32(j))
		if at != now {
			b.until = min(b.until, at)
		} else if b.startSome(v, b.list[i:i+1], room) == 0 {
			b.until = now
		} else {
			room -= n.Need
		}
		b.room = room
	}
}

// reserve takes need out of the profile at the earliest time from which it stays free for lasts, and returns that time:
// never if there is none.
func (b *wholeProfile) reserve(need, lasts int64) (at int64) {
	a, k := 0, 0
	for end := int64(queue.Never); k < len(b.profile.Free); k++ {
		if b.profile.Free[k] < need {
			a, end = k+1, queue.Never
			continue
		}
		if end == queue.Never {
			end = b.profile.From[a] + lasts
		}
		if k+1 < len(b.profile.From) && b.profile.From[k+1] >= end {
			break
		}
	}
	if a >= len(b.profile.From) {
		return queue.Never
	}
	at = b.profile.From[a]
	k = min(k, len(b.profile.From)-1)
	if end := at + lasts; k+1 == len(b.profile.From) || b.profile.From[k+1] > end {
		b.profile.From = slices.Insert(b.profile.From, k+1, end)
		b.profile.Free = slices.Insert(b.profile.Free, k+1, b.profile.Free[k])
	}
	for i := a; i <= k; i++ {
		b.profile.Free[i] -= need
	}
	return at
}

// ProfileSteps returns the room that p, which back-fills conservatively, has needed so far for the steps of its
// profile.
func ProfileSteps(p Policy) int {
	b, ok := Undivided(p).(*Scheduler).fill.(*conservative)
	if !ok {
		b = Undivided(p).(*Scheduler).fill.(*wholeProfile).conservative
	}
	return cap(b.profile.From)
}
