package workerplace

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/envtest"
)

var ctx = context.Background()

func newEnv(t testing.TB, change func(c *Config)) *Env {
	t.Helper()
	c := DefaultConfig()
	if change != nil {
		change(&c)
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestContract(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"default": nil,
		"pairs":   func(c *Config) { c.Obs, c.Slots, c.Failures, c.Noise, c.Comm = "pairs", 5, 0.02, 0.1, "ps" },
	} {
		t.Run(name, func(t *testing.T) {
			envtest.Run(t, func() env.Env {
				return newEnv(t, func(c *Config) {
					c.Jobs = 20
					if change != nil {
						change(c)
					}
				})
			}, envtest.NoAllocs(), envtest.Sealed(), envtest.Cap(3000))
		})
	}
}

// play is an episode by a rule.
func play(t testing.TB, e *Env, name string, ep env.Episode) (ret float64) {
	t.Helper()
	r, err := RuleOf(name)
	if err != nil {
		t.Fatal(err)
	}
	ts, src := env.NewTimeStep(e.Spec()), rand.New(rand.NewPCG(ep.Seed, 1))
	if err := e.Reset(ctx, ep, ts); err != nil {
		t.Fatal(err)
	}
	for !ts.Kind.Last() {
		if err := e.Step(ctx, env.Action{Disc: []int32{r.Choose(e, src)}}, ts); err != nil {
			t.Fatal(err)
		}
		ret += ts.Reward
	}
	return ret
}

// Two jobs of one worker that take one interval and keep half beside each other.
func TestTwoJobsApartAndTogether(t *testing.T) {
	for _, c := range []struct {
		servers [2]int32
		want    float64
	}{{[2]int32{0, 1}, -1}, {[2]int32{1, 1}, -2}} {
		e := newEnv(t, func(c *Config) { c.Jobs = 2 })
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(ctx, env.Episode{Seed: 1, Window: -1}, ts); err != nil {
			t.Fatal(err)
		}
		for i := range e.jobs {
			e.jobs[i].kind, e.jobs[i].workers, e.jobs[i].work, e.jobs[i].arrives = 0, 1, 1, e.time
		}
		e.truth.logs[0][0] = math.Log(0.5)
		e.next = 0
		e.waiting = e.waiting[:0]
		e.arrive()
		e.look()
		ret := 0.0
		for _, m := range c.servers {
			// The first slot is the job that waits; after the second one the interval closes itself.
			if err := e.Step(ctx, env.Action{Disc: []int32{m}}, ts); err != nil {
				t.Fatal(err)
			}
			ret += ts.Reward
		}
		if ts.Kind != env.Terminated || math.Abs(ret-c.want) > 1e-12 {
			t.Errorf("on servers %v: return %v (%v), want %v", c.servers, ret, ts.Kind, c.want)
		}
	}
}

// The return is minus the mean completion time, and progress is the number of jobs for everybody.
func TestReturnsAreWhatTheyStandFor(t *testing.T) {
	for seed := range uint64(5) {
		e := newEnv(t, nil)
		ret := play(t, e, "random", env.Episode{Seed: seed, Window: -1})
		jct, left := e.JCTs(nil)
		sum := 0.0
		for _, x := range jct {
			sum += x
		}
		if left != 0 || math.Abs(ret+sum/float64(len(jct))) > 1e-9 {
			t.Errorf("seed %d: return %v, mean completion %v intervals, %d unfinished", seed, ret, sum/float64(len(jct)), left)
		}
		p := newEnv(t, func(c *Config) { c.Reward = "progress" })
		if ret := play(t, p, "least-interference", env.Episode{Seed: seed, Window: -1}); math.Abs(ret-60) > 1e-9 {
			t.Errorf("seed %d: progress %v, want 60", seed, ret)
		}
	}
}

func TestRulesRankAsTheyShould(t *testing.T) {
	e := newEnv(t, nil)
	mean := map[string]float64{}
	for _, r := range Rules() {
		for seed := range uint64(20) {
			mean[r.Name] += play(t, e, r.Name, env.Episode{Seed: seed, Window: -1}) / 20
		}
	}
	t.Log(mean)
	for _, pair := range [][2]string{
		{"least-interference", "load-balance"}, {"load-balance", "random"}, {"oracle", "least-interference"},
		{"sjf-least-interference", "least-interference"}, {"sjf-waits", "sjf-least-interference"},
		{"oracle", "sjf-waits"}, {"oracle-waits", "oracle"},
	} {
		if mean[pair[0]] <= mean[pair[1]] {
			t.Errorf("%s returns %v and %s %v: want the former to be better", pair[0], mean[pair[0]], pair[1], mean[pair[1]])
		}
	}
	if _, err := RuleOf("best"); err == nil || !strings.Contains(err.Error(), "load-balance") {
		t.Errorf("an unknown rule: %v", err)
	}
}

// DeepShare: 0.123 to 1, mean 0.789, 65 % below 0.9.
func TestTheTableHasThePublishedFigures(t *testing.T) {
	for seed := range uint64(20) {
		kept := Table(seed)
		least, most, sum, below := 2.0, 0.0, 0.0, 0
		for _, row := range kept {
			for _, v := range row {
				least, most, sum = min(least, v), max(most, v), sum+v
				if v < 0.9 {
					below++
				}
			}
		}
		if least != keptLeast || math.Abs(most-1) > 1e-12 || math.Abs(sum/64-keptMean) > 0.01 ||
			math.Abs(float64(below)/64-keptBelow) > 0.01 {
			t.Errorf("seed %d: %v to %v, mean %v, %d of 64 below 0.9", seed, least, most, sum/64, below)
		}
	}
	if Table(1) == Table(2) {
		t.Error("two seeds give one table")
	}
}

// Three jobs of one worker on one server: with crowding each loses, beyond what the pairs cost, what the table of
// triples says.
func TestThreeJobsCrowdEachOther(t *testing.T) {
	c := DefaultConfig()
	pairs := NewTruth(c)
	c.Crowding = 0.5
	crowd := NewTruth(c)
	p := Placement{Servers: c.Servers}
	for k, kind := range []int{2, 5, 0} {
		on := make([]int32, c.Servers)
		on[1] = 1
		p.Jobs = append(p.Jobs, Placed{Job: k, Type: kind, Workers: 1, On: on})
	}
	for n := 1; n <= 3; n++ {
		q := Placement{Servers: p.Servers, Jobs: p.Jobs[:n]}
		a, b := make([]float64, n), make([]float64, n)
		if err := pairs.Speeds(a, &q); err != nil {
			t.Fatal(err)
		}
		if err := crowd.Speeds(b, &q); err != nil {
			t.Fatal(err)
		}
		for j := range n {
			want := a[j]
			if n == 3 {
				others := [][2]int{{5, 0}, {2, 0}, {2, 5}}[j]
				want *= math.Exp(0.5 * crowd.triple[q.Jobs[j].Type][others[0]][others[1]])
			}
			if math.Abs(b[j]-want) > 1e-12 {
				t.Errorf("job %d of %d: speed %v, want %v", j, n, b[j], want)
			}
		}
	}
	for a := range crowd.triple {
		for b := range Types {
			for c := range Types {
				if x := crowd.triple[a][b][c]; x > 0 || x < math.Log(keptLeast) || x != crowd.triple[a][c][b] {
					t.Errorf("triple %d beside %d and %d: %v", a, b, c, x)
				}
			}
		}
	}
}

// A snapshot says what jobs lose in a crowd: another configuration refuses it.
func TestSnapshotsKnowTheCrowding(t *testing.T) {
	crowded := func(by float64) *Env { return newEnv(t, func(c *Config) { c.Crowding = by }) }
	e := crowded(0.5)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 3}, ts); err != nil {
		t.Fatal(err)
	}
	s, err := e.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := crowded(0.5).RestoreSnapshot(s, ts); err != nil {
		t.Error(err)
	}
	for _, by := range []float64{0, 0.6} {
		if err := crowded(by).RestoreSnapshot(s, ts); err == nil {
			t.Errorf("a snapshot with crowding 0.5 was restored with %v", by)
		}
	}
}

func TestTasksChangeWhatTheySayAlone(t *testing.T) {
	e := newEnv(t, nil)
	at := func(change func(task []float64)) *Env {
		task := []float64{1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1}
		change(task)
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(ctx, env.Episode{Seed: 4, Window: -1, Task: task}, ts); err != nil {
			t.Fatal(err)
		}
		return e
	}
	plain := slices.Clone(at(func([]float64) {}).jobs)
	long := at(func(task []float64) { task[1] = 2 }).jobs
	for i := range plain {
		if long[i].kind != plain[i].kind || long[i].arrives != plain[i].arrives ||
			math.Abs(long[i].work-2*plain[i].work) > 1e-9 && plain[i].work > 0.11 {
			t.Fatalf("job %d is %+v, of twice the length %+v", i, plain[i], long[i])
		}
	}
	if last := at(func(task []float64) { task[0] = 3 }).jobs[59].arrives; last >= plain[59].arrives {
		t.Errorf("three times the rate: the last job comes in interval %d, usually %d", last, plain[59].arrives)
	}
	for i, j := range at(func(task []float64) { clear(task[5:]); task[5+3] = 1 }).jobs {
		if j.kind != 3 {
			t.Fatalf("job %d is of type %d, want the only one", i, j.kind)
		}
	}
	if at(func(task []float64) { task[2] = 0.5 }); e.active != 3 || e.free[3].gpus != 0 {
		t.Errorf("half of the servers are %d", e.active)
	}
	at(func(task []float64) { task[3] = 0 })
	if e.truth.Kept(0, 1) != 1 { // e to the power of 0
		t.Error("without interference a job loses")
	}
	// Failures cost time.
	fail := []float64{1, 1, 1, 1, 0.2, 1, 1, 1, 1, 1, 1, 1, 1}
	if a, b := play(t, e, "least-interference", env.Episode{Seed: 4, Window: -1}),
		play(t, e, "least-interference", env.Episode{Seed: 4, Window: -1, Task: fail}); b >= a {
		t.Errorf("with failures %v, without %v", b, a)
	}
}

// half is a model of speeds.
type half struct{}

func (half) Speeds(dst []float64, _ *Placement) error {
	for i := range dst {
		dst[i] = 0.5
	}
	return nil
}

func TestSpeedsCanBePutIn(t *testing.T) {
	e := newEnv(t, nil)
	e.SetSpeeds(half{})
	seen := 0
	e.Record(func(p *Placement, measured []float64) error {
		for i, v := range measured {
			seen++
			if v != 0.5 || len(p.Jobs[i].On) != 6 {
				t.Fatalf("job %+v runs at %v", p.Jobs[i], v)
			}
		}
		return nil
	})
	play(t, e, "load-balance", env.Episode{Seed: 1, Window: -1})
	if seen < 60 {
		t.Errorf("%d speeds were seen", seen)
	}
}

func TestJobsThatAreApartAreSlower(t *testing.T) {
	for _, comm := range []string{"allreduce", "ps"} {
		truth := NewTruth(func() Config { c := DefaultConfig(); c.Comm = comm; return c }())
		for kind := range Types {
			p := &Placement{Servers: 6, Jobs: []Placed{{Type: kind, Workers: 4, On: []int32{4, 0, 0, 0, 0, 0}}}}
			var together, apart [1]float64
			if err := truth.Speeds(together[:], p); err != nil {
				t.Fatal(err)
			}
			p.Jobs[0].On = []int32{1, 1, 1, 1, 0, 0}
			if err := truth.Speeds(apart[:], p); err != nil {
				t.Fatal(err)
			}
			if together[0] != 1 || comm == "allreduce" && apart[0] > 1 || !(apart[0] > 0) {
				t.Errorf("%s, type %d: %v together, %v apart", comm, kind, together, apart)
			}
		}
	}
}

func TestBadArgumentsAreNamed(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(c *Config)
	}{
		{"servers: got 0", func(c *Config) { c.Servers = 0 }},
		{`comm: got "nccl", want allreduce or ps`, func(c *Config) { c.Comm = "nccl" }},
		{`obs: got "graph", want flat or pairs`, func(c *Config) { c.Obs = "graph" }},
		{"failures: got 0.9, want a number from 0 to 0.5", func(c *Config) { c.Failures = 0.9 }},
		{"at least 8 in all servers", func(c *Config) { c.Servers, c.GPUs = 1, 4 }},
	} {
		cfg := DefaultConfig()
		c.change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func BenchmarkEpisode(b *testing.B) {
	e := newEnv(b, nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		play(b, e, "least-interference", env.Episode{Seed: uint64(i), Window: -1})
	}
}
