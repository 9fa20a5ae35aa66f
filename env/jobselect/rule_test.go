package jobselect_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/internal/rng"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// window is a workload of one window, on an empty machine.
type window []traces.Job

func (w window) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{Jobs: w, Counted: len(w)}, nil
}

// gang is submitted at time 0.
func gang(id string, gpus, seconds int) traces.Job {
	return traces.Job{ID: id, GPUs: gpus, GPUMilli: 1000, Work: time.Duration(seconds) * time.Second}
}

// six jobs wait at once for three GPUs.
var six = window{gang("A", 3, 40), gang("B", 2, 30), gang("C", 1, 50), gang("D", 1, 20), gang("E", 2, 15),
	gang("G", 1, 20)}

// room returns an environment with jobs on a number of GPUs, of which the k oldest are visible.
func room(t *testing.T, pool string, k int, estimates string, jobs window) *sched.Env {
	t.Helper()
	cfg := jobselect.DefaultConfig()
	cfg.Warm, cfg.Load, cfg.Comm, cfg.Window, cfg.Visible, cfg.Slots, cfg.Estimates = 0, 0, "none", len(jobs), k, "oldest",
		sim.MustEstimates(estimates)
	spec, _, err := cluster.Parse(pool)
	if err != nil {
		t.Fatal(err)
	}
	e, err := jobselect.New(cfg, spec, jobs, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// table is an environment with the batch through which a policy plays it.
type table struct {
	t  *testing.T
	e  *sched.Env
	b  *env.Batch
	a  *env.Actions
	ts *env.TimeStep
}

func sit(t *testing.T, e *sched.Env) *table {
	t.Helper()
	b := env.NewBatch(e.Spec(), 1)
	s := &table{t, e, b, env.NewActions(e.Spec(), 1), &env.TimeStep{Obs: b.Obs, Mask: b.Mask, Info: b.Info}}
	if err := e.Reset(t.Context(), env.Episode{Window: 0}, s.ts); err != nil {
		t.Fatal(err)
	}
	return s
}

// step takes the given action and returns the ID of the job that it starts, or "wait".
func (s *table) step() string {
	s.t.Helper()
	name := "wait"
	if i := int(s.a.Disc[0]); i < len(s.e.State().Slots) {
		name = s.e.State().View.Trace(s.e.State().Slots[i]).ID
	}
	if err := s.e.Step(s.t.Context(), s.a.Row(0), s.ts); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// starts plays the rule called name to the end and returns what it did, in order.
func starts(t *testing.T, name string, e *sched.Env) string {
	t.Helper()
	p, err := jobselect.NewRule(name, e)
	if err != nil {
		t.Fatal(err)
	}
	s := sit(t, e)
	var order []string
	for !s.ts.Kind.Last() {
		if err := p.Act(t.Context(), s.b, s.a, nil); err != nil {
			t.Fatal(err)
		}
		order = append(order, s.step())
	}
	return strings.Join(order, " ")
}

// The orders were worked out on paper. Areas are A 120, B 60, C 50, D 20, E 30, G 20 GPU-seconds; D and G tie for
// sjf and area, C, D and G for smallest, B and E too: the lower slot, which holds the older job, wins.
func TestRulesByHand(t *testing.T) {
	for name, want := range map[string]string{
		// A takes all to 40. Then B and C; at 70 D, and G beside it, as E does not fit; at 90 E.
		"fifo": "A B C D G E",
		// E and D; at 15 G and C; at 35 B; at 65 A.
		"sjf": "E D G C B A",
		// C, D and G; at 20 B, not E; at 50 E, and A at 65.
		"smallest": "C D G B E A",
		// D and G, and C because E does not fit beside them; at 20 E; at 35 B; at 65 A.
		"area": "D G C E B A",
	} {
		if got := starts(t, name, room(t, "pool:3", 6, "exact", six)); got != want {
			t.Errorf("%s starts %s, want %s", name, got, want)
		}
	}
}

// On one GPU with two slots the shortest job is not visible before the jobs ahead of it have left.
func TestRulesSeeOnlyTheSlots(t *testing.T) {
	jobs := window{gang("long", 1, 100), gang("mid", 1, 50), gang("short", 1, 10), gang("mid2", 1, 40)}
	for k, want := range map[int]string{2: "mid short mid2 long", 4: "short mid2 mid long"} {
		if got := starts(t, "sjf", room(t, "pool:1", k, "exact", jobs)); got != want {
			t.Errorf("with %d slots sjf starts %s, want %s", k, got, want)
		}
	}
}

// Without estimates areas are sizes.
func TestAreaWithoutEstimatesIsSize(t *testing.T) {
	if got, want := starts(t, "area", room(t, "pool:3", 6, "none", six)),
		starts(t, "smallest", room(t, "pool:3", 6, "none", six)); got != want {
		t.Errorf("starts %s, want %s", got, want)
	}
}

func TestRandomRulesDrawUniformly(t *testing.T) {
	e := room(t, "pool:3", 6, "exact", six)
	s := sit(t, e)
	src := []*rand.Rand{rng.Stream(3, "draws")}
	draw := func(name string) (counts [7]int) {
		p, err := jobselect.NewRule(name, e)
		if err != nil {
			t.Fatal(err)
		}
		for range 20_000 {
			if err := p.Act(t.Context(), s.b, s.a, src); err != nil {
				t.Fatal(err)
			}
			counts[s.a.Disc[0]]++
		}
		return counts
	}
	all := []bool{true, true, true, true, true, true, false} // nothing runs and nothing will come: no waiting
	for _, name := range []string{"random", "random-start"} {
		counts := draw(name)
		uniformly(t, name+" at first", counts[:], all)
	}
	s.a.Disc[0] = 2 // start C: two GPUs are left, the slots move up: A B D E G
	if got := s.step(); got != "C" {
		t.Fatalf("slot 2 holds %s, want C", got)
	}
	fitting := []bool{false, true, true, true, true, false, false}
	counts := draw("random-start")
	uniformly(t, "random-start", counts[:], fitting)
	counts = draw("random")
	fitting[6] = true
	uniformly(t, "random", counts[:], fitting)
}

func TestNewRuleAndActRefuse(t *testing.T) {
	e := room(t, "pool:3", 6, "exact", six)
	if _, err := jobselect.NewRule("sfj", e); err == nil || !strings.Contains(err.Error(), `"sfj"`) ||
		!strings.Contains(err.Error(), "sjf") {
		t.Errorf("an unknown rule: %v, want an error that lists the known ones", err)
	}
	p, err := jobselect.NewRule("sjf", e)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Act(t.Context(), env.NewBatch(e.Spec(), 2), env.NewActions(e.Spec(), 2), nil); err == nil ||
		!strings.Contains(err.Error(), "2 rows") {
		t.Errorf("a batch of two rows: %v", err)
	}
	if want := []string{"random", "random-start", "fifo", "sjf", "smallest", "area", "hold", "srtf", "srsf", "gittins",
		"las", "las-2d", "index"}; !slices.Equal(sched.RuleNames(jobselect.Rules()), want) {
		t.Errorf("rules %v, want %v", sched.RuleNames(jobselect.Rules()), want)
	}
}

func TestRulesDoNotAllocate(t *testing.T) {
	for _, r := range jobselect.Rules() {
		name, e := r.Name, room(t, "pool:3", 6, "exact", six)
		if r.Stops {
			cfg := small(len(six))
			preempting(&cfg)
			e = newEnv(t, cfg, cluster.Spec{Pool: 3}, padded(six))
		}
		p, err := jobselect.NewRule(name, e)
		if err != nil {
			t.Fatal(err)
		}
		s, src := sit(t, e), []*rand.Rand{rng.Stream(1, "a")}
		if n := testing.AllocsPerRun(100, func() { _ = p.Act(t.Context(), s.b, s.a, src) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// uniformly fails the test unless the draws fall on the legal places alone and equally often: within five standard
// deviations.
func uniformly(t *testing.T, what string, counts []int, legal []bool) {
	t.Helper()
	n, places := 0.0, 0.0
	for i, c := range counts {
		n += float64(c)
		if legal[i] {
			places++
		}
	}
	for i, c := range counts {
		want := 0.0
		if legal[i] {
			want = n / places
		}
		if math.Abs(float64(c)-want) > 5*math.Sqrt(want*(1-1/places)) {
			t.Errorf("%s: drew %d %d times, want about %.0f", what, i, c, want)
		}
	}
}
