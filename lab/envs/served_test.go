package envs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/simulator/metrics"
	"clustergym/traces"
)

func served(t *testing.T, more ...wire.Pair) *ServedEnv {
	t.Helper()
	return makeEnvs(t, registry(t, nil), jobselect.V1, smallKwargs(more...), 1).Envs[0].(*ServedEnv)
}

func call(t *testing.T, s *ServedEnv, method string, args ...wire.Pair) any {
	t.Helper()
	v, err := s.Call(method, args)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// summaryOf returns the answer to metrics as a summary.
func summaryOf(t *testing.T, s *ServedEnv) metrics.Summary {
	t.Helper()
	b, err := json.Marshal(call(t, s, "metrics"))
	if err != nil {
		t.Fatal(err)
	}
	var sum metrics.Summary
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&sum); err != nil {
		t.Fatal(err)
	}
	return sum
}

// byRule plays the actions of the remote heuristic to the end of the episode.
func byRule(t *testing.T, s *ServedEnv, rule string, ts *env.TimeStep) {
	t.Helper()
	for !ts.Kind.Last() {
		a := call(t, s, "heuristic", wire.Pair{Key: "rule", Value: rule}).(int64)
		if err := s.Step(t.Context(), env.Action{Disc: []int32{int32(a)}}, ts); err != nil {
			t.Fatal(err)
		}
	}
}

// playSlots plays an episode with a rule through the action space while c collects its metrics.
func playSlots(t *testing.T, e *sched.Env, rule string, ep env.Episode, c *metrics.Collector) {
	t.Helper()
	p, err := jobselect.NewRule(rule, e)
	if err != nil {
		t.Fatal(err)
	}
	e.Watch(c)
	b, a := env.NewBatch(e.Spec(), 1), env.NewActions(e.Spec(), 1)
	ts := &env.TimeStep{Obs: b.Obs, Mask: b.Mask, Info: b.Info}
	err = e.Reset(t.Context(), ep, ts)
	for err == nil && !ts.Kind.Last() {
		b.Kind[0] = ts.Kind
		if err = p.Act(t.Context(), b, a, nil); err == nil {
			err = e.Step(t.Context(), a.Row(0), ts)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A player that takes a rule's actions gets the result of the rule in an evaluation, on every metric.
func TestServedRulesAndMetricsAreThoseOfEvaluations(t *testing.T) {
	load := wire.Pair{Key: "load", Value: 20.0}
	s := served(t, wire.Pair{Key: "split", Value: "test"}, load)
	ts := env.NewTimeStep(s.Spec())
	distinct := map[float64]bool{}
	for _, rule := range Find(jobselect.V1).certainRules() {
		if r, _ := Find(jobselect.V1).Rule(rule); r.Stops { // not where no job can be stopped
			if _, err := s.Call("heuristic", wire.Map{{Key: "rule", Value: rule}}); err == nil ||
				!strings.Contains(err.Error(), "want preempt: true") {
				t.Errorf("%s where no job can be stopped: %v", rule, err)
			}
			continue
		}
		for window := range 6 {
			ep := env.Episode{Seed: 7, Window: window}
			var c metrics.Collector
			args, err := decodeArgs(Find(jobselect.V1), smallKwargs(load))
			if err != nil {
				t.Fatal(err)
			}
			other := freshEnv(t, args)
			c.Keep = func(pos int) bool { return pos >= other.Window().First }
			playSlots(t, other, rule, ep, &c)
			if err := s.Reset(t.Context(), ep, ts); err != nil {
				t.Fatal(err)
			}
			byRule(t, s, rule, ts)
			got, want := summaryOf(t, s), c.Summary(0, 0)
			if got != want {
				t.Errorf("%s on window %d: %+v, want %+v", rule, window, got, want)
			}
			if math.Abs(got.JCT.Mean-ts.Info[sched.InfoJCT]) > 1e-6*got.JCT.Mean {
				t.Errorf("mean JCT is %v by metrics and %v by info", got.JCT.Mean, ts.Info[sched.InfoJCT])
			}
			distinct[got.JCT.Mean] = true
		}
	}
	if len(distinct) < 10 {
		t.Errorf("only %d different results", len(distinct))
	}
}

// freshEnv returns the plain environment of args over its test part.
func freshEnv(t *testing.T, args *Args) *sched.Env {
	t.Helper()
	w, err := registry(t, nil).workload(t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	e, err := args.d.Open(args.Settings, w.Source, traces.Test)
	if err != nil {
		t.Fatal(err)
	}
	return e.(*sched.Env)
}

// Metrics belong to the episode: they start with it, grow with it, and return to the state of a restored snapshot.
func TestMetricsAreOfTheEpisodeSoFar(t *testing.T) {
	s := served(t)
	ts := env.NewTimeStep(s.Spec())
	if err := s.Reset(t.Context(), env.Episode{Seed: 1, Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	step := func(n int) {
		for range n {
			a := call(t, s, "heuristic", wire.Pair{Key: "rule", Value: "fifo"}).(int64)
			if err := s.Step(t.Context(), env.Action{Disc: []int32{int32(a)}}, ts); err != nil {
				t.Fatal(err)
			}
		}
	}
	step(8)
	half := summaryOf(t, s)
	blob, err := s.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	byRule(t, s, "fifo", ts)
	end := summaryOf(t, s)
	if half.Finished == 0 || half.Finished >= end.Finished || end.Finished != 12 || end.Unfinished != 0 {
		t.Fatalf("%d finished half-way, %d at the end", half.Finished, end.Finished)
	}
	for _, restored := range []*ServedEnv{s, served(t)} {
		if err := restored.RestoreSnapshot(blob, ts); err != nil {
			t.Fatal(err)
		}
		if got := summaryOf(t, restored); got != half {
			t.Errorf("restored: %+v, want %+v", got, half)
		}
		if err := restored.RestoreSnapshot(blob[:len(blob)-1], ts); err == nil {
			t.Error("half a snapshot was taken")
		}
		bad := bytes.Clone(blob)
		bad[len(bad)-1] = 99
		if err := restored.RestoreSnapshot(bad, ts); err == nil {
			t.Error("a snapshot of an illegal action was taken")
		}
		if got := summaryOf(t, restored); got != half {
			t.Errorf("after refused snapshots: %+v, want %+v", got, half)
		}
		byRule(t, restored, "fifo", ts)
		if got := summaryOf(t, restored); got != end {
			t.Errorf("played on: %+v, want %+v", got, end)
		}
	}
	if err := s.Reset(t.Context(), env.Episode{Seed: 2, Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	if got := summaryOf(t, s); got.Finished != 0 {
		t.Errorf("a new episode begins with %d finished jobs", got.Finished)
	}
}

// Jobs that an episode leaves unfinished count as unfinished once.
func TestMetricsCountUnfinishedJobsOnce(t *testing.T) {
	s := served(t, wire.Pair{Key: "max_steps", Value: int64(6)})
	ts := env.NewTimeStep(s.Spec())
	if err := s.Reset(t.Context(), env.Episode{Seed: 1, Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	byRule(t, s, "fifo", ts)
	end := summaryOf(t, s)
	if ts.Kind != env.Truncated || end.Unfinished == 0 {
		t.Fatalf("%v with %d unfinished", ts.Kind, end.Unfinished)
	}
	blob, err := s.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{blob, blob[:3], append(bytes.Clone(blob), 0), blob} {
		refused := s.RestoreSnapshot(b, ts) != nil
		if refused != (len(b) != len(blob)) {
			t.Fatalf("a snapshot of %d bytes: refused %v", len(b), refused)
		}
		if got := summaryOf(t, s); got != end {
			t.Errorf("after a snapshot of %d bytes: %+v, want %+v", len(b), got, end)
		}
	}
}

func TestCallsThatCannotBeAnsweredSayWhy(t *testing.T) {
	s := served(t)
	blind := served(t, wire.Pair{Key: "estimates", Value: "none"})
	ts := env.NewTimeStep(s.Spec())
	rule := func(v any) wire.Map { return wire.Map{{Key: "rule", Value: v}} }
	check := func(s *ServedEnv, method string, args wire.Map, code wire.Code, want string) {
		t.Helper()
		v, err := s.Call(method, args)
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Error(), want) {
			t.Errorf("%s %v: %v, %v; want %s with %q", method, args, v, err, code, want)
		}
	}
	check(s, "metrics", nil, wire.NeedsReset, "first reset")
	check(s, "heuristic", rule("sjf"), wire.NeedsReset, "none has begun")
	if err := s.Reset(t.Context(), env.Episode{}, ts); err != nil {
		t.Fatal(err)
	}
	if err := blind.Reset(t.Context(), env.Episode{}, env.NewTimeStep(blind.Spec())); err != nil {
		t.Fatal(err)
	}
	check(s, "heuristic", rule("lifo"), wire.BadRequest, "fifo, sjf, smallest, area")
	check(s, "heuristic", rule("random"), wire.BadRequest, "fifo, sjf, smallest, area")
	check(s, "heuristic", rule(int64(3)), wire.BadRequest, "a string")
	check(s, "heuristic", nil, wire.BadRequest, "rule")
	check(s, "metrics", rule("sjf"), wire.BadRequest, "no arguments")
	check(s, "explode", nil, wire.Unsupported, "metrics or heuristic")
	check(blind, "heuristic", rule("sjf"), wire.Unsupported, "hides")
	if fmt.Sprint(call(t, blind, "heuristic", rule("fifo")...)) != "0" {
		t.Error("the oldest job stands in slot 0")
	}
	byRule(t, s, "sjf", ts)
	check(s, "heuristic", rule("sjf"), wire.NeedsReset, "has ended")
	if err := s.Reset(t.Context(), env.Episode{Window: 1 << 30}, ts); err == nil {
		t.Fatal("no such window")
	}
	check(s, "metrics", nil, wire.NeedsReset, "first reset")
}
