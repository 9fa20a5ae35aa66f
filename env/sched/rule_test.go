package sched_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/env/gpupick"
	"clustergym/env/jobselect"
	"clustergym/env/policymix"
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/traces"
)

// rulesOf returns the rules of an environment, and a function that makes their actors.
func rulesOf(e sched.Arena) ([]sched.Rule, func(name string) (*sched.Actor, error)) {
	switch e := e.(type) {
	case *gpupick.Env:
		return gpupick.Rules(), func(name string) (*sched.Actor, error) { return gpupick.NewRule(name, e) }
	case *queuerank.Env:
		return queuerank.Rules(), func(name string) (*sched.Actor, error) { return queuerank.NewRule(name, e) }
	case *delayoffer.Env:
		return delayoffer.Rules(), func(name string) (*sched.Actor, error) { return delayoffer.NewRule(name, e) }
	case *sched.Env:
		if e.Spec().ID == jobselect.V1 {
			return jobselect.Rules(), func(name string) (*sched.Actor, error) { return jobselect.NewRule(name, e) }
		}
		return policymix.Rules(), func(name string) (*sched.Actor, error) { return policymix.NewRule(name, e) }
	}
	panic("an environment without rules")
}

// follow plays episode ep with an actor.
func follow(t *testing.T, e env.Env, a *sched.Actor, ep env.Episode, seed uint64) (ret float64, ts *env.TimeStep) {
	t.Helper()
	ts = env.NewTimeStep(e.Spec())
	b, dst := &env.Batch{N: 1, Mask: ts.Mask}, env.NewActions(e.Spec(), 1)
	src := []*rand.Rand{rand.New(rand.NewPCG(seed, 1))}
	ret, _, err := env.Play(ctx, e, ep, ts, func(_ *env.TimeStep, act env.Action) error {
		if err := a.Act(ctx, b, dst, src); err != nil {
			return err
		}
		act.Disc[0] = dst.Disc[0]
		return nil
	})
	if err != nil { // an illegal action, for instance
		t.Fatal(err)
	}
	return ret, ts
}

// A rule takes legal actions only, plays an episode the same way each time, and draws exactly if it says so.
func TestRulesPlayLegallyAndDrawAsTheySay(t *testing.T) {
	each(t, func(t *testing.T, _ arena, e sched.Arena, _ []traces.Job, _ cluster.Spec) {
		rules, actor := rulesOf(e)
		if rules[0] != sched.RandomRule() || len(rules) < 4 {
			t.Errorf("the rules are %v", sched.RuleNames(rules))
		}
		for _, r := range rules {
			if r.About == "" || strings.HasSuffix(r.About, ".") {
				t.Errorf("%s is about %q", r.Name, r.About)
			}
			a, err := actor(r.Name)
			if j, ok := e.(*sched.Env); r.Stops && ok && !j.Stops() {
				if err == nil || !strings.Contains(err.Error(), "want preempt: true") {
					t.Errorf("%s where no job can be stopped: %v", r.Name, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			var c metrics.Collector
			e.Watch(&c)
			play := func(seed uint64) string {
				ret, ts := follow(t, e, a, env.Episode{Seed: 3, Window: 1}, seed)
				return fmt.Sprint(ret, ts.Info, finishes(&c))
			}
			one, two := play(1), play(2)
			if again := play(1); again != one {
				t.Errorf("%s plays\n%s\nand then\n%s", r.Name, one, again)
			}
			if (one != two) != r.Random {
				t.Errorf("%s draws: %v, it says %v", r.Name, one != two, r.Random)
			}
		}
		if _, err := actor("best"); err == nil ||
			!strings.HasPrefix(err.Error(), e.Spec().ID+`: rule "best" is unknown, want one of random, `) {
			t.Errorf("a rule that does not exist: %v", err)
		}
	})
}

// The rules of QueueRank-v1 are the heuristics of their names with admission commit, and those of PolicyMix-v1 its
// policies with admission skip, job by job. Submit times are distinct, because a heuristic may hold the first of two
// simultaneous jobs before it has seen the second, which the environment never does.
func TestRulesAreTheHeuristicsOfTheirNames(t *testing.T) {
	apart(t, func(t *testing.T, a arena, e sched.Arena, _ []traces.Job, _ cluster.Spec) {
		admission, placement := "commit", "first-fit"
		if strings.HasPrefix(a.name, "policymix") {
			admission, placement = "skip", policymix.DefaultConfig().Placement
		} else if a.name != "queuerank" {
			t.Skip("its rules are compared elsewhere")
		}
		rules, actor := rulesOf(e)
		distinct := map[string]bool{}
		for _, r := range rules[1:] {
			if r.Estimates != schedulers.Estimating(r.Name) {
				t.Errorf("%s needs estimates: %v", r.Name, r.Estimates)
			}
			cfg := schedulers.DefaultConfig()
			cfg.Order, cfg.Admission, cfg.Placement = r.Name, admission, placement
			h, err := schedulers.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			act, err := actor(r.Name)
			if err != nil {
				t.Fatal(err)
			}
			counted := func(pos int) bool { return pos >= e.First() }
			got, want := metrics.Collector{Keep: counted}, metrics.Collector{Keep: counted}
			ep := env.Episode{Seed: 3, Window: 1}
			e.Watch(&got)
			follow(t, e, act, ep, 1)
			e.Watch(nil)
			if err := e.Simulate(ctx, ep, h, &want); err != nil {
				t.Fatal(err)
			}
			if g, w := finishes(&got), finishes(&want); g != w || got.Len() != arenaWindow {
				t.Errorf("%s: jobs finish at\n%s\nby the heuristic at\n%s", r.Name, g, w)
			}
			distinct[finishes(&got)] = true
		}
		if len(distinct) < len(rules)-2 {
			t.Errorf("%d rules play %d ways: the jobs show no difference", len(rules)-1, len(distinct))
		}
	})
}
