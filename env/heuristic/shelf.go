package heuristic

import (
	"cmp"
	"slices"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// kind holds the waiting jobs with one request, as trees in rank order with their estimates. Jobs of one kind fit or
// do not fit together.
type kind struct {
	req   cluster.Request
	need  int64    // thousandths of a GPU
	trees []branch // none is empty
	state kindState
	freed bool // reopened in this pass because something was freed there, and has room nowhere else
}

// branch is the tree of one class of jobs, in which keys are 0 because the class has it. If jobs are not ranked by
// class there is one branch, of class 0.
type branch struct{ class, root int32 }

// kindState is what a pass knows about a kind.
type kindState uint8

const (
	kindOpen   kindState = iota // any of its jobs may start
	kindShort                   // only jobs that end in time may start: others would delay the head
	kindClosed                  // there is no room
)

// shelf holds the waiting jobs of one line by kind, for back-filling. It finds the first in rank of all jobs, and the
// first in rank among those that the states of their kinds allow.
type shelf struct {
	tree   *treap
	ranks  *ranks // of classes; nil = jobs are ranked by their own keys
	marks  *[]jobMark
	kinds  []kind
	byNeed []int32                   // all kinds, those with the least need first
	whole  []int32                   // kinds of whole GPUs and nothing else, by GPUs
	index  map[cluster.Request]int32 // the other kinds
	spare  []int32                   // indices free for reuse
	of     []int32                   // by job
	shut   []int32                   // kinds with a state other than base
	again  []int32                   // kinds with freed set
	limit  int64                     // how long jobs of short kinds may last
	base   kindState                 // state of kinds about which nothing is known
	heads  tourney                   // by kind: the first
	picks  tourney                   // by kind: the first job that its state allows
	empty  int
}

func (s *shelf) reset(tree *treap, base kindState) {
	s.tree, s.base, s.limit = tree, base, 0
	if s.index == nil {
		s.index = map[cluster.Request]int32{}
	}
	clear(s.index)
	s.kinds, s.byNeed, s.whole, s.spare, s.shut, s.again = s.kinds[:0], s.byNeed[:0], s.whole[:0], s.spare[:0], s.shut[:0], s.again[:0]
	s.heads.clear()
	s.picks.clear()
	s.empty = 0
}

// clear removes all jobs.
func (s *shelf) clear() {
	for i := range s.kinds {
		k := &s.kinds[i]
		for len(k.trees) > 0 {
			s.remove(sim.Job(k.trees[0].root))
		}
	}
}

// kindOf returns the kind of r, creating it if needed.
func (s *shelf) kindOf(r *cluster.Request) int32 {
	plain := r.Milli == 1000 && r.Types == 0 && r.CPUMilli == 0 && r.MemBytes == 0 && r.GPUs < 1<<16
	if plain {
		for r.GPUs >= len(s.whole) {
			s.whole = append(s.whole, none)
		}
		if k := s.whole[r.GPUs]; k != none {
			return k
		}
	} else if k, ok := s.index[*r]; ok {
		return k
	}
	if s.empty > 64 && s.empty > len(s.kinds)/2 {
		s.forget()
	}
	k := int32(len(s.kinds))
	switch n := len(s.spare); {
	case n > 0:
		k, s.spare = s.spare[n-1], s.spare[:n-1]
	case int(k) < cap(s.kinds): // reuse the memory of an earlier kind
		s.kinds = s.kinds[:k+1]
	default:
		s.kinds = append(s.kinds, kind{})
	}
	s.kinds[k] = kind{req: *r, need: int64(r.GPUs) * int64(r.Milli), trees: s.kinds[k].trees[:0], state: s.base}
	s.empty++
	at, _ := slices.BinarySearchFunc(s.byNeed, s.kinds[k].need, func(i int32, need int64) int { return cmp.Compare(s.kinds[i].need, need) })
	s.byNeed = slices.Insert(s.byNeed, at, k)
	if plain {
		s.whole[r.GPUs] = k
	} else {
		s.index[*r] = k
	}
	return k
}

// forget drops the kinds that no job waits with: a workload may have a kind for every job.
func (s *shelf) forget() {
	keep := func(k int32) bool { return len(s.kinds[k].trees) > 0 }
	s.shut = slices.DeleteFunc(s.shut, func(k int32) bool { return !keep(k) })
	s.byNeed = slices.DeleteFunc(s.byNeed, func(k int32) bool {
		if keep(k) {
			return false
		}
		if r := &s.kinds[k].req; r.GPUs < len(s.whole) && s.whole[r.GPUs] == k {
			s.whole[r.GPUs] = none
		} else {
			delete(s.index, *r)
		}
		s.spare = append(s.spare, k)
		return true
	})
	s.empty = 0
}

// push adds a job that is expected to run for lasts.
func (s *shelf) push(e entry, lasts int64, r *cluster.Request) {
	i := s.kindOf(r)
	for int(e.job) >= len(s.of) {
		s.of = append(s.of, 0)
	}
	s.of[e.job] = i
	k := &s.kinds[i]
	if len(k.trees) == 0 {
		s.empty--
	}
	b := s.branch(k, e.job)
	if b == nil {
		k.trees = append(k.trees, branch{s.class(e.job), none})
		b = &k.trees[len(k.trees)-1]
	}
	b.root = s.tree.insert(b.root, e.job, ordered(e.key), e.pos, lasts, k.need)
	s.play(i)
}

// class returns the class of j, 0 if jobs are not ranked by class.
func (s *shelf) class(j sim.Job) int32 {
	if s.ranks == nil {
		return 0
	}
	return (*s.marks)[j].class
}

// branch returns the branch of k that j belongs to, nil if there is none yet.
func (s *shelf) branch(k *kind, j sim.Job) *branch {
	class := s.class(j)
	for i := range k.trees {
		if k.trees[i].class == class {
			return &k.trees[i]
		}
	}
	return nil
}

// rerank gives the jobs of all classes that have other keys since the last update their new ones.
func (s *shelf) rerank() {
	for i := range s.kinds {
		for _, b := range s.kinds[i].trees {
			if s.ranks.moved[b.class] {
				s.play(int32(i))
				break
			}
		}
	}
}

// rekey gives every job the key that key returns, and removes those for which it returns false. It is for jobs that are
// not ranked by class.
func (s *shelf) rekey(key func(j sim.Job) (float64, bool)) {
	for i := range s.kinds {
		k := &s.kinds[i]
		if len(k.trees) == 0 {
			continue
		}
		b := &k.trees[0]
		if b.root = s.tree.rekey(b.root, key); b.root == none {
			k.trees = k.trees[:0]
			s.empty++
		}
		s.play(int32(i))
	}
}

func (s *shelf) remove(j sim.Job) {
	i := s.of[j]
	k := &s.kinds[i]
	b := s.branch(k, j)
	if b.root = s.tree.remove(b.root, j); b.root == none {
		last := len(k.trees) - 1
		*b, k.trees = k.trees[last], k.trees[:last]
		if last == 0 {
			s.empty++
		}
	}
	s.play(i)
}

// entry returns what was pushed for the job at node i.
func (s *shelf) entry(i int32) entry {
	n := &s.tree.nodes[i]
	e := entry{key: unordered(n.key), pos: n.pos, job: sim.Job(i)}
	if s.ranks != nil {
		e.key = s.ranks.key[s.class(e.job)]
	}
	return e
}

// first returns the first in rank of k, none if k is empty.
func (s *shelf) first(k *kind) (first int32) {
	first = none
	for _, b := range k.trees {
		first = s.earlier(first, s.tree.first(b.root))
	}
	return first
}

// firstWithin returns the first in rank of those jobs of k that run at most limit, none if there are none.
func (s *shelf) firstWithin(k *kind, limit int64) (first int32) {
	first = none
	for _, b := range k.trees {
		first = s.earlier(first, s.tree.within(b.root, limit))
	}
	return first
}

// earlier returns which of two nodes goes first; either may be none.
func (s *shelf) earlier(a, b int32) int32 {
	switch {
	case a == none:
		return b
	case b == none:
		return a
	}
	x, y := s.entry(a), s.entry(b)
	if y.before(&x) {
		return b
	}
	return a
}

// play updates both searches after a change of kind i.
func (s *shelf) play(i int32) {
	k := &s.kinds[i]
	if f := s.first(k); f != none {
		s.heads.set(int(i), s.entry(f))
	} else {
		s.heads.unset(int(i))
	}
	s.pick(i)
}

func (s *shelf) pick(i int32) {
	k := &s.kinds[i]
	f := int32(none)
	switch k.state {
	case kindOpen:
		f = s.first(k)
	case kindShort:
		f = s.firstWithin(k, s.limit)
	}
	if f != none {
		s.picks.set(int(i), s.entry(f))
	} else {
		s.picks.unset(int(i))
	}
}

// least returns the least need of a waiting job, never if none waits.
func (s *shelf) least() int64 {
	for _, i := range s.byNeed {
		if len(s.kinds[i].trees) > 0 {
			return s.kinds[i].need
		}
	}
	return never
}

// head returns the first in rank of all waiting jobs.
func (s *shelf) head(v *sim.View) (e entry, ok bool) {
	for {
		i := s.heads.first(unlimited)
		if i < 0 {
			return e, false
		}
		if e = s.heads.top[i]; !stale(v, &e) {
			return e, true
		}
		s.remove(e.job)
	}
}

// next returns the first in rank of the jobs that may start as far as is known.
func (s *shelf) next(v *sim.View) (e entry, ok bool) {
	for {
		i := s.picks.first(unlimited)
		if i < 0 {
			return e, false
		}
		e = s.picks.top[i]
		switch {
		case stale(v, &e):
			s.remove(e.job)
		case s.kinds[i].state == kindShort && s.tree.nodes[e.job].time > s.limit:
			s.pick(int32(i)) // the limit has shrunk since
		default:
			return e, true
		}
	}
}

// mark sets the state of j's kind to what the pass has found out.
func (s *shelf) mark(j sim.Job, state kindState) {
	i := s.of[j]
	k := &s.kinds[i]
	if k.state == s.base {
		s.shut = append(s.shut, i)
	}
	k.state = state
	s.pick(i)
}

// reopen opens the kinds that had no room and may have room now.
func (s *shelf) reopen(c *cluster.Cluster, f *freed) {
	for _, i := range s.again {
		s.kinds[i].freed = false
	}
	s.again = s.again[:0]
	if !f.any {
		return
	}
	still := s.shut[:0]
	for _, i := range s.shut {
		k := &s.kinds[i]
		if k.state != kindClosed || !f.mayFit(c, &k.req) {
			still = append(still, i)
			continue
		}
		if k.state = s.base; !f.all {
			k.freed = true
			s.again = append(s.again, i)
		}
		s.pick(i)
	}
	s.shut = still
}

// hopeless reports whether the kind of j is known to have no room, without looking at the whole cluster.
func (s *shelf) hopeless(c *cluster.Cluster, f *freed, j sim.Job) bool {
	k := &s.kinds[s.of[j]]
	return k.freed && !f.mayFit(c, &k.req)
}

// reopenShort forgets which kinds would delay the head, because the head or its reservation has changed.
func (s *shelf) reopenShort() { s.reopenShortIf(func(int32) bool { return true }) }

// reopenShortBehind forgets which kinds would delay the head, because e is the first job that this pass starts. A kind
// with a job before e stays short: this pass has come past that job, and nothing had changed then.
func (s *shelf) reopenShortBehind(e *entry) {
	s.reopenShortIf(func(i int32) bool { return len(s.kinds[i].trees) == 0 || !s.heads.top[i].before(e) })
}

func (s *shelf) reopenShortIf(reopen func(i int32) bool) {
	still := s.shut[:0]
	for _, i := range s.shut {
		if s.kinds[i].state == kindClosed || !reopen(i) {
			still = append(still, i)
			continue
		}
		s.kinds[i].state = s.base
		s.pick(i)
	}
	s.shut = still
}

// within lets jobs of short kinds run up to limit.
func (s *shelf) within(limit int64) {
	if s.limit < limit { // if it shrinks, next corrects the picks
		s.limit = limit
		for i := range s.kinds {
			if s.kinds[i].state == kindShort {
				s.pick(int32(i))
			}
		}
	}
	s.limit = limit
}

// fitting returns the first in rank of the jobs for at most room thousandths that run at most limit, or need at most
// spare. It is for counters, where nothing else matters.
func (s *shelf) fitting(room, limit, spare int64) (e entry, ok bool) {
	best := int32(none)
	for _, i := range s.byNeed {
		k := &s.kinds[i]
		if k.need > room {
			break
		}
		if k.need <= spare {
			best = s.earlier(best, s.first(k))
		} else {
			best = s.earlier(best, s.firstWithin(k, limit))
		}
	}
	if best == none {
		return e, false
	}
	return s.entry(best), true
}
