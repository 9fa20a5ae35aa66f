package queue

import (
	"slices"

	"clustergym/simulator/sim"
)

// Profile is how many thousandths of GPUs are free as a function of time: Free[i] from From[i] until From[i+1].
type Profile struct {
	From, Free []int64
	jobs       []sim.Job // scratch
}

// Begin shows what will be free from now on if no other job starts: room now, and more as the running jobs end.
func (p *Profile) Begin(now, room int64, running *Ends) {
	p.From, p.Free = append(p.From[:0], now), append(p.Free[:0], room)
	p.jobs = running.List(p.jobs[:0])
	for _, j := range p.jobs {
		room += running.Held(j)
		if end, last := running.Of(j), len(p.From)-1; end <= p.From[last] {
			p.Free[last] = room
		} else {
			p.From, p.Free = append(p.From, end), append(p.Free, room)
		}
	}
}

// Wall cuts the profile off where less than least is free. It returns how long a job that starts now can last without
// reaching that time, never if least always stays free, and the most that is free before.
func (p *Profile) Wall(least int64) (limit, most int64) {
	limit = Never
	for i, free := range p.Free {
		if free < least {
			limit = p.From[i] - p.From[0]
			p.From, p.Free = p.From[:i+1], p.Free[:i+1]
			break
		}
		most = max(most, free)
	}
	return limit, most
}

// Window is a time for which something stays free: steps first to last of the profile.
type Window struct {
	Need, Lasts, At int64
	Count           int64 // the number of jobs for which there is room
	first, last     int
}

// Find returns the earliest window in which need stays free for lasts. ok is false if there is none before the wall,
// or none at all, which can happen while nodes are down.
func (p *Profile) Find(need, lasts int64) (w Window, ok bool) {
	w = Window{Need: need, Lasts: lasts}
	a := 0
	k := a
	least := int64(Never) // in steps a to k
	for end := int64(Never); k < len(p.Free); k++ {
		if p.Free[k] < need {
			a, end, least = k+1, Never, Never
			continue
		}
		if end == Never {
			end = p.From[a] + lasts
		}
		least = min(least, p.Free[k])
		if k+1 < len(p.From) && p.From[k+1] >= end {
			break
		}
	}
	if a >= len(p.From) {
		return w, false
	}
	w.At, w.first, w.last, w.Count = p.From[a], a, min(k, len(p.From)-1), Never
	if need > 0 {
		w.Count = least / need
	}
	return w, true
}

// Reserve takes w out of the profile, for count jobs.
func (p *Profile) Reserve(w *Window, count int64) {
	k := w.last
	if end := w.At + w.Lasts; k+1 == len(p.From) || p.From[k+1] > end {
		p.From = slices.Insert(p.From, k+1, end)
		p.Free = slices.Insert(p.Free, k+1, p.Free[k])
	}
	for i := w.first; i <= k; i++ {
		p.Free[i] -= w.Need * count
	}
}
