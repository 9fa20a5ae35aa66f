package envs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/agents"
	"clustergym/bridge/handle"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/env/jobselect"
	"clustergym/env/queuerank"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/env/workerplace"
	"clustergym/internal/raced"
	"clustergym/nets/onnx"
	"clustergym/simulator/metrics"
	"clustergym/simulator/policyname"
)

func allAdvice(c *RegistryConfig) { c.Advice.Policies = []string{AllPolicies} }

// advised is a served environment that answers advise.
type advised interface {
	env.Env
	handle.Adviser
}

func ask(policy string, more ...wire.Pair) wire.Map {
	return append(wire.Map{{Key: "policy", Value: policy}}, more...)
}

// journal plays an episode by choose and returns the bytes of every time step and every action.
func journal(t *testing.T, e env.Env, ep env.Episode, choose func(ts *env.TimeStep) []int32) []byte {
	t.Helper()
	var b bytes.Buffer
	ts := env.NewTimeStep(e.Spec())
	err := e.Reset(t.Context(), ep, ts)
	for steps := 0; err == nil; steps++ {
		fmt.Fprintln(&b, ts.Kind, ts.Reward, ts.Elapsed, ts.Obs, ts.Mask)
		if ts.Kind.Last() || steps == 400 {
			return b.Bytes()
		}
		a := choose(ts)
		fmt.Fprintln(&b, a)
		err = e.Step(t.Context(), env.Action{Disc: a}, ts)
	}
	t.Fatal(err)
	return nil
}

func advice(t *testing.T, e advised, args wire.Map) []int32 {
	t.Helper()
	v, err := e.Advise(t.Context(), args)
	if err != nil {
		t.Fatal(args, err)
	}
	switch v := v.(type) {
	case int64:
		return []int32{int32(v)}
	case []int64:
		var out []int32
		for _, x := range v {
			out = append(out, int32(x))
		}
		return out
	}
	t.Fatalf("advice %v of type %T", v, v)
	return nil
}

// smallArgs returns arguments with which id loads and plays quickly.
func smallArgs(d *Descriptor) wire.Map {
	switch {
	case jobselect.Is(d.ID):
		return smallKwargs(wire.Pair{Key: "load", Value: 3.0})
	case d.Ongoing:
		return wire.Map{{Key: "window", Value: int64(12)}, {Key: "warm", Value: int64(8)},
			{Key: "trace", Value: wire.Map{{Key: "synth", Value: wire.Map{{Key: "jobs", Value: int64(400)}}}}}}
	case d.Simulated():
		return wire.Map{{Key: "window", Value: int64(12)},
			{Key: "trace", Value: wire.Map{{Key: "synth", Value: wire.Map{{Key: "jobs", Value: int64(400)}}}}}}
	}
	return nil
}

// The advice of every rule of every environment, followed, is the play of that rule as evaluations make it. So is that
// of a rule that looks ahead. Questions to all other policies at every step change no byte of it.
func TestAdviceIsThePlayOfThePolicy(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestAdviceLooksAheadAsEvaluationsDo, which takes less time; make unit runs this test")
	}
	for _, d := range slices.Concat(scheduling, planning) {
		for _, preempt := range []bool{false, true} {
			if preempt && d.ID != jobselect.V1 {
				continue
			}
			kwargs := smallArgs(d)
			if preempt {
				kwargs = append(kwargs, wire.Pair{Key: "preempt", Value: true}, wire.Pair{Key: "running", Value: int64(4)})
			}
			r := registry(t, allAdvice)
			served := makeEnvs(t, r, d.ID, kwargs, 1).Envs[0].(advised)
			if len(served.Advises()) < 1 {
				t.Fatalf("%s advises nothing", d.ID)
			}
			args, err := decodeArgs(d, kwargs)
			if err != nil {
				t.Fatal(err)
			}
			w, err := r.workload(t.Context(), args)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range served.Advises() {
				plain, err := d.Open(args.Settings, w.Source, args.part())
				if err != nil {
					t.Fatal(err)
				}
				n := policyname.Of(name)
				base, ahead := n.Base, n.Ahead != policyname.None
				var p agents.Policy
				if ahead {
					cfg := rollout.DefaultConfig()
					cfg.Budget.Rollouts = 32
					p, err = rollout.NewActor(rollout.Setup{Config: cfg}, base, plain.(*sched.Env))
				} else {
					rule, _ := d.Rule(base)
					p, err = rule.Policy(plain)
				}
				if err != nil {
					t.Fatal(d.ID, name, err)
				}
				ep := env.Episode{Seed: 7, Window: -1}
				b, a := env.NewBatch(plain.Spec(), 1), env.NewActions(plain.Spec(), 1)
				want := journal(t, plain, ep, func(ts *env.TimeStep) []int32 {
					copy(b.Obs, ts.Obs)
					copy(b.Mask, ts.Mask)
					b.Kind[0] = ts.Kind
					if err := p.Act(t.Context(), b, a, nil); err != nil {
						t.Fatal(d.ID, name, err)
					}
					return slices.Clone(a.Disc)
				})
				question := ask(name)
				if ahead {
					question = ask(name, wire.Pair{Key: "budget", Value: int64(32)})
				}
				others := false
				choose := func(*env.TimeStep) []int32 {
					if others {
						for _, o := range served.Advises() {
							if policyname.Of(o).Ahead == policyname.None || o == "rollout:sjf@slots" {
								advice(t, served, ask(o))
							}
						}
					}
					first := advice(t, served, question)
					if others && !slices.Equal(first, advice(t, served, question)) {
						t.Errorf("%s: %s advises otherwise when asked again", d.ID, name)
					}
					return first
				}
				for _, others = range []bool{false, true} {
					if got := journal(t, served, ep, choose); !bytes.Equal(got, want) {
						t.Errorf("%s, preempt %v: %s (asking others: %v) plays otherwise than in evaluations", d.ID, preempt, name,
							others)
					}
				}
				_ = plain.Close()
			}
		}
	}
}

// A look ahead changes the schedule, and gives the metrics of an evaluation of the window.
func TestAdviceLooksAheadAsEvaluationsDo(t *testing.T) {
	raced.Alone(t)
	kwargs := smallKwargs(wire.Pair{Key: "load", Value: 3.0}, wire.Pair{Key: "split", Value: "test"})
	s := makeEnvs(t, registry(t, allAdvice), jobselect.V1, kwargs, 1).Envs[0].(*ServedEnv)
	args, err := decodeArgs(Find(jobselect.V1), kwargs)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for window := range 4 {
		ep := env.Episode{Seed: 7, Window: window}
		var c metrics.Collector
		plain := freshEnv(t, args)
		c.Keep = func(pos int) bool { return pos >= plain.Window().First }
		plain.Watch(&c)
		p, err := rollout.NewActor(rollout.Setup{Config: rollout.DefaultConfig()}, "fifo", plain)
		if err != nil {
			t.Fatal(err)
		}
		journal(t, plain, ep, func(ts *env.TimeStep) []int32 {
			a, err := p.Action(t.Context(), ts.Mask)
			if err != nil {
				t.Fatal(err)
			}
			return []int32{a}
		})
		journal(t, s, ep, func(*env.TimeStep) []int32 {
			a := advice(t, s, ask("rollout:fifo@slots"))
			if !slices.Equal(a, advice(t, s, ask("fifo@slots"))) {
				changed++
			}
			return a
		})
		if got, want := summaryOf(t, s), c.Summary(0, 0); got != want {
			t.Errorf("window %d: %+v, want %+v", window, got, want)
		}
	}
	if changed == 0 {
		t.Error("looking ahead changed no decision")
	}
}

func TestAdviceIsRefusedInOneSentence(t *testing.T) {
	r := registry(t, func(c *RegistryConfig) {
		c.Advice = Advice{Policies: []string{"sjf@slots", "rollout:sjf@slots", "srtf@slots", "eft@slots"}, Budget: 64,
			Time: time.Second}
	})
	job := makeEnvs(t, r, jobselect.V1, smallKwargs(), 1).Envs[0].(advised)
	budget := func(v any) wire.Map { return ask("rollout:sjf@slots", wire.Pair{Key: "budget", Value: v}) }
	ts := env.NewTimeStep(job.Spec())
	refused := func(e advised, args wire.Map, code wire.Code, want string) {
		t.Helper()
		v, err := e.Advise(t.Context(), args)
		var w *wire.Error
		if !errors.As(err, &w) || w.Code != code || !strings.Contains(w.Error(), want) {
			t.Errorf("%v: %v, %v; want %s: %s", args, v, err, code, want)
		}
	}
	refused(job, ask("sjf@slots"), wire.NeedsReset, "none has begun")
	if err := job.Reset(t.Context(), env.Episode{Seed: 1, Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	refused(job, ask("sjff@slots"), wire.BadRequest, "sjf@slots")
	refused(job, ask("eft@slots"), wire.Unsupported, "does not act through the actions of "+jobselect.V1)
	refused(job, ask("srtf@slots"), wire.Unsupported, "want preempt: true")
	refused(job, ask("fifo@slots"), wire.Unsupported, "fifo@slots is not enabled on this server")
	refused(job, ask("sjf@slots", wire.Pair{Key: "budget", Value: int64(8)}), wire.BadRequest, "takes no budget")
	refused(job, ask("sjf@slots", wire.Pair{Key: "depth", Value: int64(8)}), wire.BadRequest, "policy, budget")
	for _, v := range []any{int64(0), int64(65), int64(-1), "2s", "soon", 1.5} {
		refused(job, budget(v), wire.BadRequest, "1 to 64 rollouts, or a time from 100us to 1s")
	}
	for _, v := range []any{int64(64), "64", "1ms"} {
		if a := advice(t, job, budget(v)); !ts.Mask[a[0]] {
			t.Errorf("budget %v: action %d is masked", v, a)
		}
	}
	for !ts.Kind.Last() {
		if err := job.Step(t.Context(), env.Action{Disc: advice(t, job, ask("sjf@slots"))}, ts); err != nil {
			t.Fatal(err)
		}
	}
	refused(job, ask("sjf@slots"), wire.NeedsReset, "the episode has ended")
	refused(makeEnvs(t, registry(t, nil), jobselect.V1, smallKwargs(), 1).Envs[0].(advised), ask("sjf@slots"),
		wire.Unsupported, "not enabled on this server")
	for _, id := range []string{queuerank.V1, dagplace.ID, workerplace.ID} {
		e := makeEnvs(t, r, id, smallArgs(Find(id)), 1).Envs[0].(advised)
		refused(e, ask("rollout:sjf@slots"), wire.Unsupported, "does not act through the actions of "+id)
	}
	for _, c := range []struct {
		a    Advice
		want string
	}{
		{Advice{Policies: []string{"sjff@slots"}, Budget: 1, Time: time.Second}, "advise"},
		{Advice{Policies: []string{AllPolicies}, Time: time.Second}, "budget"},
		{Advice{Policies: []string{AllPolicies}, Budget: 1, Time: time.Hour}, "budget_time"},
	} {
		if err := c.a.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.a, err)
		}
	}
}

// scorer returns a model that prefers the action of the largest index, for observations of a width.
func scorer(t *testing.T, name string, width, actions int) Model {
	t.Helper()
	weights := make([]float32, width*actions)
	bias := make([]float32, actions)
	for k := range bias {
		bias[k] = float32(k)
	}
	m := &onnx.Model{IR: 8, Opset: 17, Graph: onnx.Graph{
		Name: "scorer", Inputs: []onnx.Value{{Name: "obs", Type: onnx.Float32, Known: true, Shape: []int{-1, width}}},
		Outputs: []onnx.Value{{Name: "logits", Type: onnx.Float32}},
		Tensors: []onnx.Tensor{
			{Name: "w", Type: onnx.Float32, Shape: []int{width, actions}, Floats: weights},
			{Name: "b", Type: onnx.Float32, Shape: []int{actions}, Floats: bias},
		},
		Nodes: []onnx.Node{{Op: "Gemm", Inputs: []string{"obs", "w", "b"}, Outputs: []string{"logits"}}},
	}}
	file := filepath.Join(t.TempDir(), "scorer.onnx")
	if err := os.WriteFile(file, m.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := ReadModel(file, name)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// Models are asked by their names where they fit, and nowhere else.
func TestModelsAreAsked(t *testing.T) {
	s := makeEnvs(t, registry(t, nil), jobselect.V1, smallKwargs(), 1).Envs[0].Spec()
	r := registry(t, func(c *RegistryConfig) {
		c.Advice.Models = []Model{scorer(t, "last", s.ObsLen(), s.MaskLen()), scorer(t, "other", 3, 2)}
	})
	made := makeEnvs(t, r, jobselect.V1, smallKwargs(), 2)
	if got := fmt.Sprint(made.Meta["advise"]); got != "[last]" {
		t.Errorf("meta says %s", got)
	}
	e := made.Envs[1].(advised)
	ts := env.NewTimeStep(s)
	if err := e.Reset(t.Context(), env.Episode{Seed: 3, Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	for !ts.Kind.Last() {
		want := len(ts.Mask) - 1
		for !ts.Mask[want] {
			want--
		}
		got := advice(t, e, ask("last"))
		if got[0] != int32(want) {
			t.Fatalf("it advises %d where %v is legal", got[0], ts.Mask)
		}
		first := slices.Index(ts.Mask, true) // to get on
		if err := e.Step(t.Context(), env.Action{Disc: []int32{int32(first)}}, ts); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Advise(t.Context(), ask("other")); err == nil ||
		!strings.Contains(err.Error(), "has 3 numbers a row, and an observation of JobSelect-v1 has") {
		t.Error(err)
	}
	if _, err := e.Advise(t.Context(), ask("sjf@slots")); err == nil || !strings.Contains(err.Error(), "not enabled") {
		t.Error(err)
	}
	twice := Advice{Models: []Model{scorer(t, "sjf@slots", 1, 1), scorer(t, "a", 1, 1), scorer(t, "a", 1, 1)}}
	if err := twice.Validate(); err == nil || strings.Count(err.Error(), "want a name that no other policy has") != 2 {
		t.Error(err)
	}
}

// A client that has gone ends its search.
func TestAdviceEndsWithItsContext(t *testing.T) {
	e := makeEnvs(t, registry(t, func(c *RegistryConfig) {
		c.Advice = Advice{Policies: []string{AllPolicies}, Budget: 1_000_000, Time: time.Minute}
	}), jobselect.V1, smallKwargs(wire.Pair{Key: "load", Value: 3.0}), 1).Envs[0].(advised)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(t.Context(), env.Episode{Seed: 1, Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for !ts.Kind.Last() {
		_, err := e.Advise(ctx, ask("rollout:sjf@slots", wire.Pair{Key: "budget", Value: int64(1_000_000)}))
		if errors.Is(err, context.Canceled) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if err := e.Step(t.Context(), env.Action{Disc: advice(t, e, ask("sjf@slots"))}, ts); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("no decision had two candidates")
}
