package schedulers_test

import (
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/traces"
)

// order returns the jobs that start at 0, in order.
func order(t *testing.T, spec cluster.Spec, jobs []traces.Job, h schedulers.Policy) string {
	t.Helper()
	var out []string
	for _, e := range strings.Split(events(t, spec, jobs, h), ", ") {
		if f := strings.Fields(e); f[0] == "0s" && f[1] == "start" {
			out = append(out, f[2])
		}
	}
	return strings.Join(out, " ")
}

// The example of the paper's section 4.1: 9 cores and 18 GB, A's tasks take 1 core and 4 GB, B's 3 cores and 1 GB. A
// ends up with three tasks (12/18 of the memory), B with two (6/9 of the cores).
func TestDominantResourceFairness(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 1, CPUs: 9, MemGB: 18}}}}}
	var jobs []traces.Job
	for _, user := range []string{"A", "B"} {
		for range 5 {
			j := traces.Job{ID: user, User: user, Work: 10 * second, CPUMilli: 1000, MemBytes: 4 << 30}
			if user == "B" {
				j.CPUMilli, j.MemBytes = 3000, 1<<30
			}
			jobs = append(jobs, j)
		}
	}
	h := scheduler(t, func(c *schedulers.Config) { c.Order = "drf" })
	check(t, "the paper's example", order(t, spec, jobs, h), "A B A B A")
	// Users with GPUs only: B's one job of three is more than A's two of one; within a user, the first goes first.
	jobs = []traces.Job{whole("A1", 0, 10*second, 1), whole("A2", 0, 10*second, 1), whole("B1", 0, 10*second, 3),
		whole("A3", 0, 10*second, 2)}
	for i := range jobs {
		jobs[i].User = jobs[i].ID[:1]
	}
	check(t, "GPUs", order(t, cluster.Spec{Pool: 8}, jobs, h), "A1 B1 A2 A3")
}

// 4 GPUs and 40 cores. To begin with Y has alignment 1/4 + 30/40 = 1, Z 1/4 + 10/40 = 1/2 and X 2/4. When Y has
// started, 3/4 and 1/4 are free: Z has 3/16 + 1/16, X 6/16.
func TestPackerLooksAtWhatIsLeft(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 4, CPUs: 40}}}}}
	jobs := []traces.Job{whole("Z", 0, 10*second, 1), whole("X", 0, 10*second, 2), whole("Y", 0, 10*second, 1)}
	jobs[0].CPUMilli, jobs[2].CPUMilli = 10_000, 30_000
	h := scheduler(t, func(c *schedulers.Config) { c.Order = "packer" })
	check(t, "packer", order(t, spec, jobs, h), "Y X Z")
}

// 4 GPUs; A wants all for 40 s, B one for 10 s, C two for 20 s: alignments 1, 1/4 and 1/2 of the best, shortness 1/4, 1
// and 1/2 of the shortest.
func TestTetrisWeighsAlignmentAgainstShortness(t *testing.T) {
	jobs := []traces.Job{whole("C", 0, 20*second, 2), whole("B", 0, 10*second, 1), whole("A", 0, 40*second, 4)}
	for align, want := range map[float64]string{
		0:   "B C",
		0.4: "B C", // A 0.4 + 0.15, B 0.1 + 0.6, C 0.5
		0.5: "B C", // A and B 0.625: B stands first in the trace
		0.6: "A",   // A 0.6 + 0.1, B 0.15 + 0.4, C 0.5
		1:   "A",
	} {
		h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Admission, c.Align = "tetris", "skip", align })
		if got := order(t, cluster.Spec{Pool: 4}, jobs, h); got != want {
			t.Errorf("align %g: got %s, want %s", align, got, want)
		}
	}
}

// Three of four jobs take 10 s and one 40 s. With a quantum of 10 s, G(0) = 3/4 / 10 s; G(10 s) and G(20 s) are 0,
// because the long one ends in none of these quanta, and G(30 s) = 1 / 10 s.
func TestGittinsByHand(t *testing.T) {
	known := func(c *schedulers.Config) {
		c.Order, c.Quantum = "gittins-2d", 10*second
		for _, s := range []int{10, 40, 10, 10} {
			c.Service = append(c.Service, time.Duration(s)*second)
		}
	}
	for _, c := range []struct {
		name, want string
		c          int // when C arrives
	}{
		{"C comes in A's third quantum",
			"0s start A, 10s preempt A, 10s start B, 20s finish B, 20s start A, 35s preempt A, 35s start C, 45s finish C, 45s start A, 1m0s finish A", 35},
		{"C comes in A's last",
			"0s start A, 10s preempt A, 10s start B, 20s finish B, 20s start A, 50s finish A, 50s start C, 1m0s finish C", 42},
	} {
		jobs := []traces.Job{whole("A", 0, 40*second, 1), whole("B", 5*second, 10*second, 1),
			whole("C", time.Duration(c.c)*second, 10*second, 1)}
		check(t, c.name, events(t, cluster.Spec{Pool: 1}, jobs, scheduler(t, known)), c.want)
	}
	// Two GPUs count twice: A's first quantum is over at 5.
	check(t, "GPU-time",
		events(t, cluster.Spec{Pool: 2}, []traces.Job{whole("A", 0, 20*second, 2), whole("B", second, 10*second, 1)},
			scheduler(t, known)),
		"0s start A, 5s preempt A, 5s start B, 15s finish B, 15s start A, 30s finish A")
	// Without a distribution it learns from the first job that jobs take 10 s: B, which has run longer, gives way to
	// C.
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Quantum = "gittins-2d", 10*second })
	for range 2 { // and forgets it for the next run
		check(t, "learnt",
			events(t, cluster.Spec{Pool: 1},
				[]traces.Job{whole("A", 0, 10*second, 1), whole("B", 0, 40*second, 1), whole("C", 12*second, 10*second, 1)}, h),
			"0s start A, 10s finish A, 10s start B, 20s preempt B, 20s start C, 30s finish C, 30s start B, 1m0s finish B")
	}
}
