package queue

import (
	"cmp"
	"slices"

	"clustergym/internal/grow"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// kind holds the waiting jobs with one request, as trees in rank order with their estimates. Jobs of one kind fit or
// do not fit together.
type kind struct {
	req   cluster.Request
	need  int64    // thousandths of a GPU
	trees []Branch // none is empty
	state State
	freed bool // reopened in this pass because something was freed there, and has room nowhere else
}

// Branch is the tree of one class of jobs, in which keys are 0 because the class has it. If jobs are not ranked by
// class there is one branch, of class 0.
type Branch struct{ Class, Root int32 }

// State is what a pass knows about a kind.
type State uint8

// What a pass may know about a kind.
const (
	Open   State = iota // any of its jobs may start
	Short               // only jobs that end in time may start: others would delay the head
	Closed              // there is no room
)

// Kinds holds the waiting jobs of one line by kind, for back-filling. It finds the first in rank of all jobs, and the
// first in rank among those that the states of their kinds allow.
type Kinds struct {
	tree    *Tree
	Classes *Classes // of classes; nil = jobs are ranked by their own keys
	Marks   *[]Mark
	kinds   []kind
	byNeed  []int32                   // all kinds, those with the least need first
	whole   []int32                   // kinds of whole GPUs and nothing else, by GPUs
	index   map[cluster.Request]int32 // the other kinds
	spare   []int32                   // indices free for reuse
	of      []int32                   // by job
	shut    []int32                   // kinds with a state other than base
	again   []int32                   // kinds with freed set
	Limit   int64                     // how long jobs of short kinds may last
	base    State                     // state of kinds about which nothing is known
	heads   tournament                // by kind: the first
	picks   tournament                // by kind: the first job that its state allows
	empty   int
}

// Reset forgets all jobs. Those to come are nodes of tree, and base is the state of kinds about which a pass has found
// out nothing.
func (s *Kinds) Reset(tree *Tree, base State) {
	s.tree, s.base, s.Limit = tree, base, 0
	if s.index == nil {
		s.index = map[cluster.Request]int32{}
	}
	clear(s.index)
	s.kinds, s.byNeed, s.whole, s.spare, s.shut, s.again = s.kinds[:0], s.byNeed[:0], s.whole[:0], s.spare[:0], s.shut[:0],
		s.again[:0]
	s.heads.clear()
	s.picks.clear()
	s.empty = 0
}

// Clear removes all jobs.
func (s *Kinds) Clear() {
	for i := range s.kinds {
		k := &s.kinds[i]
		for len(k.trees) > 0 {
			s.Remove(sim.Job(k.trees[0].Root))
		}
	}
}

// kindOf returns the kind of r, creating it if needed.
func (s *Kinds) kindOf(r *cluster.Request) int32 {
	counted := Plain(r) && r.GPUs < 1<<16
	if counted {
		if k := *grow.Or(&s.whole, r.GPUs, None); k != None {
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
	at, _ := slices.BinarySearchFunc(s.byNeed, s.kinds[k].need,
		func(i int32, need int64) int { return cmp.Compare(s.kinds[i].need, need) })
	s.byNeed = slices.Insert(s.byNeed, at, k)
	if counted {
		s.whole[r.GPUs] = k
	} else {
		s.index[*r] = k
	}
	return k
}

// forget drops the kinds that no job waits with: a workload may have a kind for every job.
func (s *Kinds) forget() {
	keep := func(k int32) bool { return len(s.kinds[k].trees) > 0 }
	s.shut = slices.DeleteFunc(s.shut, func(k int32) bool { return !keep(k) })
	s.byNeed = slices.DeleteFunc(s.byNeed, func(k int32) bool {
		if keep(k) {
			return false
		}
		if r := &s.kinds[k].req; r.GPUs < len(s.whole) && s.whole[r.GPUs] == k {
			s.whole[r.GPUs] = None
		} else {
			delete(s.index, *r)
		}
		s.spare = append(s.spare, k)
		return true
	})
	s.empty = 0
}

// Push adds a job that is expected to run for lasts.
func (s *Kinds) Push(e Entry, lasts int64, r *cluster.Request) {
	i := s.kindOf(r)
	*grow.At(&s.of, e.Job) = i
	k := &s.kinds[i]
	if len(k.trees) == 0 {
		s.empty--
	}
	b := s.branch(k, e.Job)
	if b == nil {
		k.trees = append(k.trees, Branch{s.class(e.Job), None})
		b = &k.trees[len(k.trees)-1]
	}
	b.Root = s.tree.Insert(b.Root, e.Job, Ordered(e.Key), e.Pos, lasts, k.need)
	s.update(i)
}

// class returns the class of j, 0 if jobs are not ranked by class.
func (s *Kinds) class(j sim.Job) int32 {
	if s.Classes == nil {
		return 0
	}
	return (*s.Marks)[j].Class
}

// branch returns the branch of k that j belongs to, nil if there is none yet.
func (s *Kinds) branch(k *kind, j sim.Job) *Branch {
	class := s.class(j)
	for i := range k.trees {
		if k.trees[i].Class == class {
			return &k.trees[i]
		}
	}
	return nil
}

// Rerank gives the jobs of all classes that have other keys since the last update their new ones.
func (s *Kinds) Rerank() {
	for i := range s.kinds {
		for _, b := range s.kinds[i].trees {
			if s.Classes.moved[b.Class] {
				s.update(int32(i))
				break
			}
		}
	}
}

// Rekey gives every job the key that key returns, and removes those for which it returns false. It is for jobs that are
// not ranked by class.
func (s *Kinds) Rekey(key func(j sim.Job) (float64, bool)) {
	for i := range s.kinds {
		k := &s.kinds[i]
		if len(k.trees) == 0 {
			continue
		}
		b := &k.trees[0]
		if b.Root = s.tree.Rekey(b.Root, key); b.Root == None {
			k.trees = k.trees[:0]
			s.empty++
		}
		s.update(int32(i))
	}
}

// Remove removes j, which must be here.
func (s *Kinds) Remove(j sim.Job) {
	i := s.of[j]
	k := &s.kinds[i]
	b := s.branch(k, j)
	if b.Root = s.tree.Remove(b.Root, j); b.Root == None {
		last := len(k.trees) - 1
		*b, k.trees = k.trees[last], k.trees[:last]
		if last == 0 {
			s.empty++
		}
	}
	s.update(i)
}

// entry returns what was pushed for the job at node i.
func (s *Kinds) entry(i int32) Entry {
	n := &s.tree.Nodes[i]
	e := Entry{Key: unordered(n.Key), Pos: n.Pos, Job: sim.Job(i)}
	if s.Classes != nil {
		e.Key = s.Classes.Keys[s.class(e.Job)]
	}
	return e
}

// first returns the first in rank of k, none if k is empty.
func (s *Kinds) first(k *kind) (first int32) {
	first = None
	for _, b := range k.trees {
		first = s.earlier(first, s.tree.First(b.Root))
	}
	return first
}

// firstWithin returns the first in rank of those jobs of k that run at most limit, none if there are none.
func (s *Kinds) firstWithin(k *kind, limit int64) (first int32) {
	first = None
	for _, b := range k.trees {
		first = s.earlier(first, s.tree.within(b.Root, limit))
	}
	return first
}

// earlier returns which of two nodes goes first; either may be none.
func (s *Kinds) earlier(a, b int32) int32 {
	switch {
	case a == None:
		return b
	case b == None:
		return a
	}
	x, y := s.entry(a), s.entry(b)
	if y.Before(&x) {
		return b
	}
	return a
}

// update updates both searches after a change of kind i.
func (s *Kinds) update(i int32) {
	k := &s.kinds[i]
	if f := s.first(k); f != None {
		s.heads.set(int(i), s.entry(f))
	} else {
		s.heads.unset(int(i))
	}
	s.pick(i)
}

func (s *Kinds) pick(i int32) {
	k := &s.kinds[i]
	f := int32(None)
	switch k.state {
	case Open:
		f = s.first(k)
	case Short:
		f = s.firstWithin(k, s.Limit)
	}
	if f != None {
		s.picks.set(int(i), s.entry(f))
	} else {
		s.picks.unset(int(i))
	}
}

// Least returns the least need of a waiting job, never if none waits.
func (s *Kinds) Least() int64 {
	for _, i := range s.byNeed {
		if len(s.kinds[i].trees) > 0 {
			return s.kinds[i].need
		}
	}
	return Never
}

// Head returns the first in rank of all waiting jobs.
func (s *Kinds) Head(v *sim.View) (e Entry, ok bool) {
	for {
		i := s.heads.first(Unlimited)
		if i < 0 {
			return e, false
		}
		if e = s.heads.held[i]; !Stale(v, &e) {
			return e, true
		}
		s.Remove(e.Job)
	}
}

// Next returns the first in rank of the jobs that may start as far as is known.
func (s *Kinds) Next(v *sim.View) (e Entry, ok bool) {
	for {
		i := s.picks.first(Unlimited)
		if i < 0 {
			return e, false
		}
		e = s.picks.held[i]
		switch {
		case Stale(v, &e):
			s.Remove(e.Job)
		case s.kinds[i].state == Short && s.tree.Nodes[e.Job].Time > s.Limit:
			s.pick(int32(i)) // the limit has shrunk since
		default:
			return e, true
		}
	}
}

// Mark sets the state of j's kind to what the pass has found out.
func (s *Kinds) Mark(j sim.Job, state State) {
	i := s.of[j]
	k := &s.kinds[i]
	if k.state == s.base {
		s.shut = append(s.shut, i)
	}
	k.state = state
	s.pick(i)
}

// Reopen opens the kinds that had no room and may have room now.
func (s *Kinds) Reopen(c *cluster.Cluster, f *Freed) {
	for _, i := range s.again {
		s.kinds[i].freed = false
	}
	s.again = s.again[:0]
	if !f.Any {
		return
	}
	still := s.shut[:0]
	for _, i := range s.shut {
		k := &s.kinds[i]
		if k.state != Closed || !f.mayFit(c, &k.req) {
			still = append(still, i)
			continue
		}
		if k.state = s.base; !f.All {
			k.freed = true
			s.again = append(s.again, i)
		}
		s.pick(i)
	}
	s.shut = still
}

// Hopeless reports whether the kind of j is known to have no room, without looking at the whole cluster.
func (s *Kinds) Hopeless(c *cluster.Cluster, f *Freed, j sim.Job) bool {
	k := &s.kinds[s.of[j]]
	return k.freed && !f.mayFit(c, &k.req)
}

// ReopenShort forgets which kinds would delay the head, because the head or its reservation has changed.
func (s *Kinds) ReopenShort() { s.reopenShortIf(func(int32) bool { return true }) }

// ReopenShortBehind forgets which kinds would delay the head, because e is the first job that this pass starts. A kind
// with a job before e stays short: this pass has come past that job, and nothing had changed then.
func (s *Kinds) ReopenShortBehind(e *Entry) {
	s.reopenShortIf(func(i int32) bool { return len(s.kinds[i].trees) == 0 || !s.heads.held[i].Before(e) })
}

func (s *Kinds) reopenShortIf(reopen func(i int32) bool) {
	still := s.shut[:0]
	for _, i := range s.shut {
		if s.kinds[i].state == Closed || !reopen(i) {
			still = append(still, i)
			continue
		}
		s.kinds[i].state = s.base
		s.pick(i)
	}
	s.shut = still
}

// Within lets jobs of short kinds run up to limit.
func (s *Kinds) Within(limit int64) {
	if s.Limit < limit { // if it shrinks, next corrects the picks
		s.Limit = limit
		for i := range s.kinds {
			if s.kinds[i].state == Short {
				s.pick(int32(i))
			}
		}
	}
	s.Limit = limit
}

// Fitting returns the first in rank of the jobs for at most room thousandths that run at most limit, or need at most
// spare. It is for counters, where nothing else matters.
func (s *Kinds) Fitting(room, limit, spare int64) (e Entry, ok bool) {
	best := int32(None)
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
	if best == None {
		return e, false
	}
	return s.entry(best), true
}
