package exact

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// The clairvoyant optimum of small instances: the non-preemptive schedule with the least sum of completion times
// on a counter, found by branch and bound.
//
// A schedule is built in order of start times: the next job starts as early as it can, not before the job chosen
// last. The search covers every schedule in which no single job can start earlier, and one of these is optimal,
// because the objective falls whenever a job completes earlier (Baker and Trietsch, Principles of Sequencing and
// Scheduling, on semi-active schedules). Choices that cannot lead to a better schedule are cut:
//
//   - a choice that leaves a gap in which another job would have run to its end,
//   - of jobs that are alike, all but the one that was submitted first,
//   - a state reached before at no greater cost (the same jobs done, the same still running),
//   - a state whose bound is not below the best schedule known.
//
// For each k the bound takes the later of two times before which no k of the remaining jobs can have completed. One
// is the k-th smallest of their earliest completions. The other is the k-th completion if jobs were fluid areas and
// all GPUs served the job with the least area left. (On a single machine, even one of varying speed, no schedule has
// completed more jobs at any time than that rule; Schrage 1968.)

// task is one job of an instance.
type task struct {
	submit, work int64 // ns
	need         int64 // thousandths of a GPU
}

// searchLimit is the number of states opened before the search gives up on a proof.
const searchLimit = 2_000_000

// maxTasks is the greatest number of jobs in an instance: a set of jobs is the bits of one uint64.
const maxTasks = 64

type search struct {
	tasks    []task
	capacity int64
	limit    int

	start  []int64 // of the schedule being built
	best   []int64 // starts of the best schedule known
	cost   int64   // sum of the completion times of best
	opened int
	cut    bool // the search stopped at its limit
	seen   map[string]int64

	// Scratch.
	key     []byte
	running []stint
	fluid   []fluidTask
	early   []int64
	done    []int64
	perLvl  [][]choice
}

// stint is a scheduled job that has not ended.
type stint struct{ end, need int64 }

type fluidTask struct {
	submit int64
	left   float64
}

type choice struct {
	task  int
	start int64
}

// searchExact returns the best start times found and whether they are proven optimal. tasks must be in order of
// submit, and every need at most capacity.
func searchExact(tasks []task, capacity int64, limit int) (start []int64, proven bool) {
	s := &search{tasks: tasks, capacity: capacity, limit: limit, start: make([]int64, len(tasks)),
		cost: math.MaxInt64, seen: map[string]int64{}, perLvl: make([][]choice, len(tasks))}
	s.seed()
	s.open(0, 0, 0, 0)
	return s.best, !s.cut
}

// seed finds initial schedules to beat: list schedules in several orders that step over jobs that do not fit.
func (s *search) seed() {
	n := len(s.tasks)
	for _, key := range []func(t *task) int64{
		func(t *task) int64 { return t.submit },
		func(t *task) int64 { return t.work },
		func(t *task) int64 { return t.work / 1000 * t.need },
		func(t *task) int64 { return t.need },
	} {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key(&s.tasks[a]), key(&s.tasks[b])) })
		start, cost := make([]int64, n), int64(0)
		var placed []int
		left := order
		for now := int64(0); len(left) > 0; {
			var rest []int
			next := int64(math.MaxInt64)
			for _, i := range left {
				t := &s.tasks[i]
				free := s.capacity
				for _, p := range placed {
					if start[p]+s.tasks[p].work > now {
						free -= s.tasks[p].need
					}
				}
				if t.submit <= now && t.need <= free {
					start[i] = now
					cost += now + t.work
					placed = append(placed, i)
					continue
				}
				if t.submit > now {
					next = min(next, t.submit)
				}
				rest = append(rest, i)
			}
			for _, p := range placed {
				if e := start[p] + s.tasks[p].work; e > now {
					next = min(next, e)
				}
			}
			left, now = rest, next
		}
		if cost < s.cost {
			s.cost, s.best = cost, start
		}
	}
}

// open tries every next job. done is the set of scheduled jobs, last the start of the latest of them, and cost the
// sum of their completion times.
func (s *search) open(depth int, done uint64, last, cost int64) {
	if depth == len(s.tasks) {
		if cost < s.cost {
			s.cost, s.best = cost, slices.Clone(s.start)
		}
		return
	}
	if s.opened++; s.opened > s.limit {
		s.cut = true
		return
	}
	if depth > 0 && s.before(done, last, cost) {
		return
	}
	choices := s.perLvl[depth][:0]
	gap := int64(math.MaxInt64) // the earliest completion of any remaining job
	for i := range s.tasks {
		if done>>i&1 == 0 {
			at := s.earliest(done, i, last)
			choices = append(choices, choice{task: i, start: at})
			gap = min(gap, at+s.tasks[i].work)
		}
	}
	s.perLvl[depth] = choices
	if cost+s.bound(done, last, choices) >= s.cost {
		return
	}
	// The likeliest first: the sooner a good schedule is found, the more is cut.
	slices.SortFunc(choices, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.start+s.tasks[a.task].work, b.start+s.tasks[b.task].work), a.task-b.task)
	})
	for k := range choices {
		c := choices[k]
		t := &s.tasks[c.task]
		if s.cut {
			return
		}
		if c.start >= gap && c.start+t.work > gap {
			continue // another job would have run to its end in the gap before this one
		}
		if s.twin(done, c.task) {
			continue
		}
		s.start[c.task] = c.start
		s.open(depth+1, done|1<<c.task, c.start, cost+c.start+t.work)
	}
}

// twin reports whether an equal remaining job comes before i and was submitted no later.
func (s *search) twin(done uint64, i int) bool {
	t := s.tasks[i]
	for k := range i {
		if o := s.tasks[k]; done>>k&1 == 0 && o.work == t.work && o.need == t.need && o.submit <= t.submit {
			return true
		}
	}
	return false
}

// live returns the scheduled jobs that end after t, in order of end.
func (s *search) live(done uint64, t int64) []stint {
	r := s.running[:0]
	for d := done; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(d)
		if end := s.start[i] + s.tasks[i].work; end > t {
			r = append(r, stint{end, s.tasks[i].need})
		}
	}
	slices.SortFunc(r, func(a, b stint) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.need, b.need)) })
	s.running = r
	return r
}

// earliest returns when job i can start, not before last. All scheduled jobs have started by then, so what is free
// only grows.
func (s *search) earliest(done uint64, i int, last int64) int64 {
	t := max(last, s.tasks[i].submit)
	r := s.live(done, t)
	free := s.capacity
	for _, x := range r {
		free -= x.need
	}
	for k := 0; free < s.tasks[i].need; k++ {
		t = r[k].end
		free += r[k].need
	}
	return t
}

// before reports whether this state was already reached at no greater cost. If not, it notes the state.
func (s *search) before(done uint64, last, cost int64) bool {
	b := binary.LittleEndian.AppendUint64(s.key[:0], done)
	b = binary.LittleEndian.AppendUint64(b, uint64(last))
	for _, x := range s.live(done, last) {
		b = binary.LittleEndian.AppendUint64(b, uint64(x.end))
		b = binary.LittleEndian.AppendUint64(b, uint64(x.need))
	}
	s.key = b
	if was, ok := s.seen[string(b)]; ok && was <= cost {
		return true
	}
	if len(s.seen) < 1<<21 { // beyond this, states are opened again, which only costs time
		s.seen[string(b)] = cost
	}
	return false
}

// bound returns a lower bound on the sum of the remaining jobs' completion times.
func (s *search) bound(done uint64, last int64, rest []choice) int64 {
	s.early, s.fluid = s.early[:0], s.fluid[:0]
	for _, c := range rest {
		t := &s.tasks[c.task]
		s.early = append(s.early, c.start+t.work)
		s.fluid = append(s.fluid, fluidTask{max(last, t.submit), float64(t.work) * float64(t.need)})
	}
	slices.Sort(s.early)
	s.flow(done, last)
	sum := int64(0)
	for k, e := range s.early {
		sum += max(e, s.done[k])
	}
	return sum
}

// flow fills s.done with the completions of the fluid schedule, rounded down.
func (s *search) flow(done uint64, last int64) {
	s.done = s.done[:0]
	for i := range s.fluid {
		if f := &s.fluid[i]; f.left <= 0 { // no work, or no GPU: it completes at once
			s.done = append(s.done, f.submit)
		}
	}
	running := s.live(done, last)
	speed := s.capacity
	for _, x := range running {
		speed -= x.need
	}
	now, k := float64(last), 0
	for len(s.done) < len(s.fluid) {
		next := math.Inf(1) // when the speed or the choice may change
		if k < len(running) {
			next = float64(running[k].end)
		}
		pick := -1
		for i := range s.fluid {
			f := &s.fluid[i]
			switch {
			case f.left <= 0:
			case float64(f.submit) > now:
				next = min(next, float64(f.submit))
			case pick < 0 || f.left < s.fluid[pick].left:
				pick = i
			}
		}
		at := math.Inf(1)
		if pick >= 0 && speed > 0 {
			at = now + s.fluid[pick].left/float64(speed)
		}
		if at <= next {
			s.fluid[pick].left = 0
			// A little early, so that no rounding can make the bound too high.
			s.done = append(s.done, int64(at*(1-1e-12)))
			now = at
			continue
		}
		if pick >= 0 {
			s.fluid[pick].left = max(math.SmallestNonzeroFloat64, s.fluid[pick].left-(next-now)*float64(speed))
		}
		now = next
		for k < len(running) && float64(running[k].end) <= now {
			speed += running[k].need
			k++
		}
	}
	slices.Sort(s.done)
}
