package exact

import (
	"math"
	"math/rand/v2"
	"testing"
)

// bruteForce tries every order of starts, with each job as early as possible after the one before.
func bruteForce(tasks []task, capacity int64) int64 {
	best := int64(math.MaxInt64)
	start := make([]int64, len(tasks))
	used := make([]bool, len(tasks))
	var order []int
	var try func(last, cost int64)
	try = func(last, cost int64) {
		if len(order) == len(tasks) {
			best = min(best, cost)
			return
		}
		for i := range tasks {
			if used[i] {
				continue
			}
			at := max(last, tasks[i].submit)
			for { // step to the next end until it fits
				free, next := capacity, int64(math.MaxInt64)
				for _, k := range order {
					if e := start[k] + tasks[k].work; e > at {
						free -= tasks[k].need
						next = min(next, e)
					}
				}
				if free >= tasks[i].need {
					break
				}
				at = next
			}
			used[i], start[i] = true, at
			order = append(order, i)
			try(at, cost+at+tasks[i].work)
			order = order[:len(order)-1]
			used[i] = false
		}
	}
	try(0, 0)
	return best
}

func total(tasks []task, start []int64) (sum int64) {
	for i, t := range tasks {
		sum += start[i] + t.work
	}
	return sum
}

func randomTasks(r *rand.Rand, n int, capacity int64) []task {
	var tasks []task
	submit := int64(0)
	for range n {
		submit += r.Int64N(6) * r.Int64N(2)
		tasks = append(tasks, task{submit, r.Int64N(20), r.Int64N(1 + capacity)}) // some without work, some without GPUs
	}
	return tasks
}

func TestSearchFindsTheOptimum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		capacity := 1 + r.Int64N(6)
		tasks := randomTasks(r, 1+r.IntN(7), capacity)
		start, proven := searchExact(tasks, capacity, searchLimit)
		if want := bruteForce(tasks, capacity); !proven || total(tasks, start) != want {
			t.Fatalf("%+v on %d: %d (proven %v), want %d", tasks, capacity, total(tasks, start), proven, want)
		}
		// Check that it is a valid schedule.
		for i, a := range tasks {
			if start[i] < a.submit {
				t.Fatalf("job %d starts before its submit", i)
			}
			used := int64(0)
			for k, b := range tasks {
				if start[k] <= start[i] && start[i] < start[k]+b.work {
					used += b.need
				}
			}
			if used > capacity {
				t.Fatalf("%+v on %d: %v needs %d at once", tasks, capacity, start, used)
			}
		}
	}
}

// A long wide job that comes first must wait for short ones that come soon: only a schedule with idling is optimal.
func TestSearchIdlesWhereItPays(t *testing.T) {
	tasks := []task{{0, 100, 4}, {1, 1, 4}, {2, 1, 4}, {3, 1, 4}}
	start, proven := searchExact(tasks, 4, searchLimit)
	if !proven || total(tasks, start) != 2+3+4+104 {
		t.Errorf("%v, proven %v", start, proven)
	}
}

func TestSearchGivesUpAtItsLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tasks := randomTasks(r, 14, 6)
	start, proven := searchExact(tasks, 6, 3)
	if proven || len(start) != 14 {
		t.Errorf("%d starts, proven %v", len(start), proven)
	}
}

func BenchmarkSearch(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	tasks := randomTasks(r, 12, 8)
	for b.Loop() {
		if _, proven := searchExact(tasks, 8, searchLimit); !proven {
			b.Fatal("not proven")
		}
	}
}
