package delayoffer_test

import (
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/dally"
)

// answers plays an episode by a rule, shows its answers to see, and returns the mean JCT.
func answers(t *testing.T, rule string, e *delayoffer.Env, see func(a int32)) float64 {
	t.Helper()
	act, err := delayoffer.NewRule(rule, e)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	b, dst := &env.Batch{N: 1, Mask: ts.Mask}, env.NewActions(e.Spec(), 1)
	if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
		t.Fatal(err)
	}
	for !ts.Kind.Last() {
		if err := act.Act(ctx, b, dst, nil); err != nil {
			t.Fatal(err)
		}
		see(dst.Disc[0])
		step(t, e, dst.Disc[0], ts)
	}
	return ts.Info[delayoffer.InfoJCT]
}

// Rule timers answers as the environment's policy does if auto is off, rule auto if it is on. With the other setting
// each rule differs from the policy somewhere.
func TestTheRulesOfTheTimersAreThePolicysAnswers(t *testing.T) {
	jobs := dally.Generate(dally.Config{Jobs: 160, PerDay: 200, Multi: true, MaxGPUs: 64}, 2)
	for rule, auto := range map[string]bool{"timers": false, "auto": true} {
		other := 0
		for _, on := range []bool{false, true} {
			cfg := delayoffer.DefaultConfig()
			cfg.Auto, cfg.RackWait, cfg.NetworkWait = on, 2, 3
			e, _ := open(t, cfg, slow(t, "2x4"), jobs)
			asked, declined := 0, 0
			answers(t, rule, e, func(a int32) {
				asked++
				if a == delayoffer.Decline {
					declined++
				}
				if a == e.Timely() {
					return
				}
				if on == auto {
					t.Errorf("offer %d, auto %v: rule %s answers %d, the policy %d", asked, on, rule, a, e.Timely())
				}
				other++
			})
			if declined == 0 || declined == asked {
				t.Errorf("rule %s declines %d of %d offers", rule, declined, asked)
			}
		}
		if other == 0 {
			t.Errorf("rule %s answers as the other timers do", rule)
		}
	}
}

// order notes the jobs in the order of their starts.
type order []string

func (o *order) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		if e.Kind == sim.Start {
			*o = append(*o, v.Trace(e.Job).ID)
		}
	}
	return nil
}

// When a ends at 10 s, the gang x of three GPUs is offered both machines first. It takes them, unless it gives way to
// y, which has a hundredth of x's remaining time left. If x has only 40 s left, it does not give way.
func TestALongGangGivesWayToAShortOne(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		rule      string
		x         time.Duration
		estimates string
		want      string
	}{
		{"nearest", 1000 * s, "exact", "a x y"}, {"give-way", 1000 * s, "exact", "a y x"},
		{"give-way", 40 * s, "exact", "a x y"},
		{"accept", 1000 * s, "exact", "a x y"}, {"give-way", 1000 * s, "none", "a x y"}, // neither has run
	} {
		cfg := delayoffer.DefaultConfig()
		cfg.Ideal, cfg.Estimates, cfg.Auto = false, sim.MustEstimates(c.estimates), false
		e, _ := open(t, cfg, pairs(), []traces.Job{job("a", 0, 10*s, 2), job("x", s, c.x, 3), job("y", 2*s, 10*s, 3)})
		var got order
		e.Watch(&got)
		answers(t, c.rule, e, func(int32) {})
		text := ""
		for i, id := range got[:3] {
			if i > 0 {
				text += " "
			}
			text += id
		}
		if text != c.want {
			t.Errorf("%s, x %v, estimates %s: jobs start as %s, want %s", c.rule, c.x, c.estimates, text, c.want)
		}
	}
}

// If placement matters, accepting every offer costs more communication, and so time, than waiting for near GPUs.
func TestWaitingForNearGPUsBeatsTakingAny(t *testing.T) {
	jobs := dally.Generate(dally.Config{Jobs: 120, PerDay: 150, Multi: true, MaxGPUs: 64}, 2)
	jct := map[string]float64{}
	for _, rule := range []string{"accept", "auto", "nearest", "give-way"} {
		e, _ := open(t, delayoffer.DefaultConfig(), slow(t, "2x4"), jobs)
		jct[rule] = answers(t, rule, e, func(int32) {})
	}
	if jct["accept"] < 1.1*jct["auto"] || jct["give-way"] > jct["nearest"] {
		t.Errorf("mean JCTs %v", jct)
	}
}
