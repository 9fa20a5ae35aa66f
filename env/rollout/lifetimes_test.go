package rollout_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/internal/raced"
	"clustergym/internal/testseed"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// recorded are settings that draw run times of recorded jobs.
func recorded(budget int) rollout.Config {
	c := small(budget)
	c.Lifetimes = rollout.OfRecords
	return c
}

// spy plays FIFO with skip and looks at every decision.
type spy struct {
	sim.Scheduler
	look func(v *sim.View)
}

func (s *spy) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	s.look(v)
	return s.Scheduler.Decide(v, p, d)
}

// In a run of the training part itself, what is drawn is longer than the job has run, and the run time of a job that is
// neither this one nor near the run. The same bits draw the same.
func TestRecordedLifetimesAreOthers(t *testing.T) {
	seed := testseed.Or(31)
	jobs := generated(t, 6000, seed)
	e := environment(t, jobs, "history", 48)
	src, err := rollout.RecordedOf(e)
	if err != nil {
		t.Fatal(err)
	}
	training := e.Parts().Windows.(interface {
		Jobs(p traces.Part) []traces.Job
	}).Jobs(traces.Training)
	where := map[time.Duration][]int{}
	for i := range training {
		where[training[i].Work] = append(where[training[i].Work], i)
	}
	draws, r := 0, rand.New(rand.NewPCG(seed, 31))
	watch := func(v *sim.View) {
		low, high := src.Near(v)
		for _, list := range [...][]sim.Job{v.Waiting(), v.Running()} {
			for _, j := range list {
				x, ran := r.Uint64(), v.Ran(j)
				got, ok := src.Lasting(v, j, ran, low, high, x)
				if again, same := src.Lasting(v, j, ran, low, high, x); again != got || same != ok {
					t.Fatalf("the same bits draw %v and %v", got, again)
				}
				if !ok {
					continue
				}
				draws++
				if got <= ran {
					t.Errorf("a job that has run for %v is drawn to end after %v", ran, got)
				}
				others := slices.ContainsFunc(where[got], func(i int) bool {
					return (i < low || i >= high) && training[i].ID != v.Trace(j).ID
				})
				if !others {
					t.Errorf("run time %v of job %s is drawn, which only jobs near the run have", got, v.Trace(j).ID)
				}
			}
		}
	}
	s := &spy{policy(t, base("fifo", "skip", "history")), watch}
	for k := range 3 {
		if err := e.Simulate(ctx, env.Episode{Seed: seed, Window: 20 + 9*k, Split: env.SplitTrain}, s, discard{}); err !=
			nil {
			t.Fatal(err)
		}
	}
	if draws < 100 {
		t.Errorf("%d draws", draws)
	}
}

// Jobs of a user whose jobs are all short are drawn short, and those of one whose jobs are long are drawn long.
func TestRecordedLifetimesAreOfLikeForecasts(t *testing.T) {
	seed := testseed.Or(32)
	r := rand.New(rand.NewPCG(seed, 32))
	jobs := generated(t, 3000, seed)
	for i := range jobs {
		jobs[i].User, jobs[i].Work = "short", time.Duration(50+r.IntN(20))*time.Second
		if r.IntN(2) == 0 {
			jobs[i].User, jobs[i].Work = "long", time.Duration(5000+r.IntN(2000))*time.Second
		}
	}
	e := environment(t, jobs, "history", 48)
	src, err := rollout.RecordedOf(e)
	if err != nil {
		t.Fatal(err)
	}
	right, all := 0, 0
	s := &spy{policy(t, base("fifo", "skip", "history")), func(v *sim.View) {
		low, high := src.Near(v)
		for _, j := range v.Waiting() {
			got, ok := src.Lasting(v, j, 0, low, high, r.Uint64())
			if !ok {
				t.Fatal("nothing is drawn")
			}
			if all++; (got < 1000*time.Second) == (v.Trace(j).User == "short") {
				right++
			}
		}
	}}
	for k := range 8 {
		if err := e.Simulate(ctx, env.Episode{Seed: seed, Window: k}, s, discard{}); err != nil {
			t.Fatal(err)
		}
	}
	// Users are not all that forecasts go by, so some of the draws are of the other one; half of them would be without
	// forecasts.
	if all < 100 || right < all*3/4 {
		t.Errorf("seed %d: %d of %d draws are of the right user", seed, right, all)
	}
}

// With recorded run times too, the number of workers changes nothing; nor do, before a moment, longer jobs in the
// system at that moment and another future.
func TestRecordedLifetimesKnowNothingOfTheRun(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestWorkersChangeNothing, which takes less time; make unit runs this test")
	}
	compared, runs := 0, uint64(4)
	if checked {
		runs = 1 // checking the books after every change takes long
	}
	for k := range runs {
		seed := testseed.Or(33) + k
		r := rand.New(rand.NewPCG(seed, 33))
		jobs := generated(t, 2500, seed)
		play := func(jobs []traces.Job, workers int) (string, *sched.Env) {
			// As recorded: another load would stretch the submit times before the moment.
			e := environment(t, jobs, "history", 64, func(c *jobselect.Config) { c.Load = 0 })
			s := scheduler(t, recorded(48), e, base("sjf", "skip", "history"), workers)
			return simulate(t, e, s, env.Episode{Seed: seed, Window: 0}).String(), e
		}
		want, e := play(jobs, 1)
		if got, _ := play(jobs, 3); got != want {
			t.Errorf("seed %d: 3 workers give another schedule", seed)
		}
		w := e.Window()
		moment := w.Traced[w.First+w.Jobs/2].Submit
		done, _ := ends(t, before(want, moment))
		other := slices.Clone(jobs)
		for i := range w.Jobs {
			pos := w.First + i
			at := slices.IndexFunc(other, func(j traces.Job) bool { return j.ID == w.Traced[pos].ID })
			if _, ended := done[pos]; i > w.Jobs/2 || i < w.Jobs/2 && !ended {
				other[at].Work += time.Duration(1+r.IntN(90000)) * time.Second
			}
		}
		got, _ := play(other, 1)
		if before(got, moment) != before(want, moment) {
			t.Errorf("seed %d: longer jobs and another future change decisions before %v", seed, moment)
		}
		if before(want, moment) != "" && got != want {
			compared++
		}
	}
	if compared == 0 && !checked {
		t.Error("nothing is compared")
	}
}

func TestRecordedLifetimesNeedATrainingPart(t *testing.T) {
	_, err := rollout.New(rollout.Setup{Config: recorded(16)}, base("sjf", "skip", "history"))
	if err == nil || !strings.Contains(err.Error(), "lifetimes: recorded draws run times of jobs from a training part") {
		t.Error(err)
	}
	if _, err := rollout.New(rollout.Setup{Config: recorded(16)}, base("sjf", "skip", "exact")); err != nil {
		t.Errorf("with known run times nothing is drawn: %v", err)
	}
	if _, err := rollout.New(rollout.Setup{Config: rollout.DefaultConfig()}, base("sjf", "skip", "history")); err != nil {
		t.Errorf("without a training part the default draws from forecasts: %v", err)
	}
	c := recorded(16)
	if c.Lifetimes = "record"; c.Validate() == nil ||
		!strings.Contains(c.Validate().Error(), `lifetimes: got "record", want one of auto, recorded, forecast`) {
		t.Error(c.Validate())
	}
}
