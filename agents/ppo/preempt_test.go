package ppo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/agents"
	"clustergym/agents/agenttest"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/nets"
)

// paces are replicas that take their steps apart, in the rows of a loop.
type paces struct {
	*agenttest.Loop[*Replicas]
	lanes []pace
}

type pace struct {
	vec       *vec.Vec
	cur, next *env.Batch
	actions   *env.Actions
	src       []*rand.Rand
	seen      []float32 // every observation acted on
}

func newPaces(t *testing.T, cfg Config, set agenttest.Setting) *paces {
	t.Helper()
	p := &paces{Loop: agenttest.NewLoop(t, replicated(cfg), set)}
	r, s := p.Agent, p.Vec.Spec()
	for k := range cfg.Replicas {
		part, err := p.Vec.Part(k*r.rows, (k+1)*r.rows)
		if err != nil {
			t.Fatal(err)
		}
		var v env.Batch
		r.view(&v, p.Batch, k)
		p.lanes = append(p.lanes, pace{
			vec: part, cur: &v, next: env.NewBatch(s,
				r.rows), actions: env.NewActions(s, r.rows), src: p.Streams[k*r.rows : (k+1)*r.rows],
		})
	}
	return p
}

// step is one step of replica k.
func (p *paces) step(k int) error {
	l, c, ctx := &p.lanes[k], p.Agent.Collectors()[k], context.Background()
	l.seen = append(l.seen, l.cur.Obs...)
	if err := c.Act(ctx, l.cur, l.actions, l.src); err != nil {
		return err
	}
	if err := l.vec.Step(ctx, nil, l.actions, l.next); err != nil {
		return err
	}
	if err := c.Observe(l.cur, l.actions, l.next); err != nil {
		return err
	}
	l.cur, l.next = l.next, l.cur
	return nil
}

// steps takes n steps of replica k, or fewer if it wants no more.
func (p *paces) steps(k, n int) error {
	for c := p.Agent.Collectors()[k]; n > 0 && c.More(); n-- {
		if err := p.step(k); err != nil {
			return err
		}
	}
	return nil
}

// collect makes replica k take before[k] steps: first the replicas for which that is less than a full rollout, then
// the others; at last the former take as many as they want.
func (p *paces) collect(t *testing.T, before ...int) {
	t.Helper()
	var late, full sync.WaitGroup
	isFull := func(k int) bool { return before[k] >= p.Agent.members[0].cfg.Steps }
	for k := range before {
		if isFull(k) {
			full.Add(1)
		} else {
			late.Add(1)
		}
	}
	err := p.Agent.Collect(func(k int) error {
		if isFull(k) {
			defer full.Done()
			late.Wait()
			return p.steps(k, before[k])
		}
		err := p.steps(k, before[k])
		late.Done()
		full.Wait()
		return errors.Join(err, p.steps(k, math.MaxInt))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (p *paces) learn(t *testing.T) {
	t.Helper()
	stats, err := p.Agent.Learn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	p.Stats = stats
}

// Replicas that take their steps apart, and of which none is cut short, end with the bytes of replicas that step
// together.
func TestWithoutStragglersReplicasLearnWhatTheyLearnTogether(t *testing.T) {
	for _, id := range []string{"InvalidAction-v1", "Nav2D-v1"} {
		cfg := busy()
		cfg.NormObs, cfg.Replicas = false, 3
		set := agenttest.Setting{Env: id, Rows: 6, Workers: 1, Autoreset: vec.SameStep, Seed: 4, Total: 2000}
		together := agenttest.NewLoop(t, replicated(cfg), set)
		cfg.PreemptShare = 1
		apart := newPaces(t, cfg, set)
		for update := range 4 {
			together.Update()
			err := apart.Agent.Collect(func(k int) error { return apart.steps(k, math.MaxInt) })
			if err != nil {
				t.Fatal(err)
			}
			apart.Agent.Progress(float64(together.Steps) / float64(together.Total))
			apart.learn(t)
			agenttest.SameState(t, fmt.Sprintf("%s, update %d", id, update), agenttest.State(t, apart.Agent.Parts()),
				agenttest.State(t, together.Agent.Parts()))
			if apart.Stat("ppo/preempted") != 0 || apart.Stat("ppo/collected") != 1 {
				t.Errorf("%v cut short, %v collected, want 0 and 1", apart.Stat("ppo/preempted"), apart.Stat("ppo/collected"))
			}
		}
	}
}

// Once two of three rollouts are full, the third ends after the current step, but not before it has a quarter; its
// last step bootstraps from the value of the observation after it.
func TestAStragglerIsCutShort(t *testing.T) {
	for _, c := range []struct{ steps, before, want int }{
		{32, 0, 8}, {32, 5, 8}, {32, 7, 8}, {32, 8, 9}, {32, 20, 21}, {32, 30, 31}, {32, 31, 32}, {3, 0, 1}, {3, 1, 2},
		{7, 0, 1},
	} {
		cfg := small()
		cfg.Replicas, cfg.PreemptShare, cfg.Steps = 3, 0.6, c.steps
		p := newPaces(t, cfg,
			agenttest.Setting{Env: "ProbeContext-v1", Rows: 6, Workers: 1, Autoreset: vec.SameStep, Seed: 4, Total: 1 << 20})
		for range 2 {
			p.collect(t, c.steps, c.before, c.steps)
			late := p.Agent.members[1]
			if late.roll.Len() != c.want || !late.roll.Full() {
				t.Fatalf("%d of %d steps when the others are done: %d in the end, want %d", c.before, c.steps, late.roll.Len(),
					c.want)
			}
			o := late.act.obsLen
			for i := range 2 {
				if got, want := float64(late.last[i]), valueOf(t, late, p.lanes[1].cur.Obs[i*o:(i+1)*o]...); got != want {
					t.Errorf("row %d bootstraps from %v, want %v", i, got, want)
				}
			}
			if err := p.step(1); err == nil {
				t.Error("a rollout that was cut short takes another step")
			}
			p.learn(t)
			cut := 1.0
			if c.want == c.steps {
				cut = 0
			}
			if got, want := p.Stat("ppo/collected"),
				float64(2*c.steps+c.want)/float64(3*c.steps); p.Stat("ppo/preempted") != cut || got != want {
				t.Errorf("%v cut short, %v collected, want %v and %v", p.Stat("ppo/preempted"), got, cut, want)
			}
			for k, a := range p.Agent.members {
				if a.roll.Len() != 0 {
					t.Errorf("replica %d keeps %d steps", k, a.roll.Len())
				}
			}
		}
	}
}

// With rollouts of unequal length the gradient of every minibatch is that of one agent over the steps that all
// replicas have in it: a mean over steps, not over replicas. Advantages are normalised over all.
func TestUnequalRolloutsGiveTheGradientOfAllSteps(t *testing.T) {
	for _, batch := range []int{0, 10} { // 3 minibatches each, or ⌈32/10⌉ = 4
		cfg := small()
		cfg.Replicas, cfg.PreemptShare, cfg.Steps, cfg.Minibatches, cfg.Batch = 3, 0.5, 16, 3, batch
		cfg.EntCoef, cfg.ClipValue = 0.01, 0.3
		p := newPaces(t, cfg,
			agenttest.Setting{Env: "InvalidAction-v1", Rows: 6, Workers: 1, Autoreset: vec.SameStep, Seed: 4, Total: 1 << 20})
		p.collect(t, 16, 6, 16)
		r := p.Agent
		if n := r.members[1].roll.Len(); n != 7 {
			t.Fatalf("%d steps, want 7", n)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range r.members[0].Params().Data { // the same step of all copies, so that ratios are not 1
			d := float32(0.05 * rng.NormFloat64())
			for _, a := range r.members {
				a.Params().Data[i] += d
			}
		}

		// One agent whose rollout holds the steps of all, one after the other.
		all := cfg
		all.Replicas, all.PreemptShare, all.Steps, all.Minibatches, all.Batch = 1, 0, 2*(16+7+16), 1, 0
		one, err := New(all, p.Vec.Spec(), 1, 1, 4)
		if err != nil {
			t.Fatal(err)
		}
		copy(one.Params().Data, r.members[0].Params().Data)
		o, m := one.act.obsLen, p.Vec.Spec().MaskLen()
		at, first := 0, make([]int, 3)
		for k, a := range r.members {
			if err := a.roll.Advantages(a.last, float32(cfg.Lambda), 1); err != nil {
				t.Fatal(err)
			}
			n := a.roll.Len() * a.rows
			first[k] = at
			copy(one.roll.Obs[at*o:], a.roll.Obs[:n*o])
			copy(one.roll.Mask[at*m:], a.roll.Mask[:n*m])
			copy(one.roll.Action.Disc[at:], a.roll.Action.Disc[:n])
			for _, col := range [][2][]float32{{one.roll.LogProb, a.roll.LogProb}, {one.roll.Value, a.roll.Value},
				{one.roll.Return, a.roll.Return}, {one.roll.Advantage, a.roll.Advantage}} {
				copy(col[0][at:], col[1][:n])
			}
			at += n
		}

		count, _ := cfg.pieces(32)
		covered := 0
		for piece := range count {
			var union []int
			index := make([][]int, 3)
			for k, a := range r.members {
				n := a.roll.Len() * a.rows
				from, to := cfg.piece(piece, n)
				if n < 32 {
					from, to = piece*n/count, (piece+1)*n/count
				}
				for i := from; i < to; i++ {
					index[k], union = append(index[k], i), append(union, first[k]+i)
				}
			}
			if len(index[1]) == 0 || len(index[1]) >= len(index[0]) && batch == 0 {
				t.Fatalf("minibatches of %d and %d steps: nothing is tested", len(index[0]), len(index[1]))
			}
			covered += len(union)
			r.exchange.reset()
			var wg sync.WaitGroup
			grads, sizes, errs := make([]*nets.Params, 3), make([]int, 3), make([]error, 3)
			for k, a := range r.members {
				wg.Go(func() { grads[k], _, sizes[k], errs[k] = gradientOf(a, index[k]) })
			}
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			// Its minibatch is larger than those of its own setting.
			one.batch.advantage = make([]float32, len(union))
			all, _, _, err := gradientOf(one, union)
			if err != nil {
				t.Fatal(err)
			}
			var diff, norm float64
			for i, g := range all.Data {
				d := float64(grads[1].Data[i] - g)
				diff, norm = diff+d*d, norm+float64(g)*float64(g)
			}
			if share := math.Sqrt(diff / norm); norm == 0 || share > 1e-5 || sizes[1] != len(union) {
				t.Errorf("batch %d, minibatch %d: %d steps, a gradient that differs by %.2g of its norm %.2g; want %d", batch,
					piece, sizes[1], share, math.Sqrt(norm), len(union))
			}
		}
		if covered != at {
			t.Errorf("minibatches cover %d of %d steps", covered, at)
		}
	}
}

// Learning is right when one rollout, by turns, is always cut short.
func TestPreemptedReplicasLearn(t *testing.T) {
	for id, want := range map[string]float64{"ProbeContext-v1": 1, "ProbeMaskedContext-v1": 1} {
		cfg := small()
		cfg.Replicas, cfg.PreemptShare, cfg.RewardScale, cfg.NormObs = 4, 0.7, true, true
		p := newPaces(t, cfg,
			agenttest.Setting{Env: id, Rows: 8, Workers: 1, Autoreset: vec.SameStep, Seed: 2, Total: 1 << 20})
		for update := range 30 {
			before := []int{32, 32, 32, 32}
			before[update%4] = update % 20
			p.collect(t, before...)
			p.learn(t)
			if p.Stat("ppo/preempted") != 1 {
				t.Fatalf("%v cut short, want 1", p.Stat("ppo/preempted"))
			}
		}
		if got := agenttest.Evaluate(t, id, p.Agent.Greedy(), 100); got != want {
			t.Errorf("%s: greedy play returns %v, want %v", id, got, want)
		}
	}
}

// All copies of the weights stay equal, bit for bit, with rollouts of any length that began at different times, and
// schedules follow the first of them.
func TestPreemptedReplicasStayEqual(t *testing.T) {
	for _, batch := range []int{0, 9} {
		cfg := busy()
		cfg.Replicas, cfg.PreemptShare, cfg.Batch = 4, 0.5, batch
		p := newPaces(t, cfg,
			agenttest.Setting{Env: "InvalidAction-v1", Rows: 8, Workers: 1, Autoreset: vec.SameStep, Seed: 4, Total: 1 << 20})
		for update, before := range [][]int{{21, 21, 0, 3}, {0, 21, 17, 21}, {21, 21, 21, 21}, {9, 12, 21, 21}} {
			share := float64(update) / 8
			p.Agent.Progress(share)
			if update > 0 { // stopped after three steps of one, and gone on with
				if err := p.Agent.Collect(func(k int) error { return p.steps(k, map[bool]int{true: 3}[k == 1]) }); err != nil {
					t.Fatal(err)
				}
				if _, err := p.Agent.Learn(context.Background()); !errors.Is(err, agents.ErrNotReady) {
					t.Fatalf("three steps of one: %v, want ErrNotReady", err)
				}
				p.Agent.Progress(share + 0.05)
			}
			p.collect(t, before...)
			p.learn(t)
			if lr := p.Stat("learning_rate"); math.Abs(lr-cfg.LR*(1-share)) > 1e-12 {
				t.Errorf("update %d: learning rate %v, want %v", update, lr, cfg.LR*(1-share))
			}
			first := p.Agent.members[0]
			for k, a := range p.Agent.members {
				for i, w := range first.Params().Data {
					if a.Params().Data[i] != w {
						t.Fatalf("update %d: replica %d has %v in place %d, replica 0 %v", update, k, a.Params().Data[i], i, w)
					}
				}
			}
		}
	}
}

// Scales count what all replicas have seen, after all have stopped.
func TestScalesCountWhatAllReplicasHaveSeen(t *testing.T) {
	cfg := small()
	cfg.Replicas, cfg.PreemptShare, cfg.NormObs, cfg.RewardScale = 3, 0.6, true, true
	p := newPaces(t, cfg,
		agenttest.Setting{Env: "Nav2D-v1", Rows: 6, Workers: 1, Autoreset: vec.SameStep, Seed: 4, Total: 1 << 20})
	for range 2 {
		p.collect(t, 32, 32, 11)
		scale := p.Agent.members[2].act.scale
		var n, sum float64
		for _, l := range p.lanes {
			for i := 0; i < len(l.seen); i += len(scale.Mean) {
				n, sum = n+1, sum+float64(l.seen[i])
			}
		}
		if scale.N != n || math.Abs(scale.Mean[0]-sum/n) > 1e-9 {
			t.Errorf("%v observations of mean %v, want %v of %v", scale.N, scale.Mean[0], n, sum/n)
		}
		if got := float64(p.Agent.scale.Stats.N); got != n {
			t.Errorf("%v rewards, want %v", got, n)
		}
		p.learn(t)
	}
}

// A replica that fails ends the collection with its error once the others have ended theirs.
func TestAnErrorWhileCollectingComesBack(t *testing.T) {
	cfg := small()
	cfg.Replicas, cfg.PreemptShare = 3, 1
	p := newPaces(t, cfg,
		agenttest.Setting{Env: "ProbeContext-v1", Rows: 3, Workers: 1, Autoreset: vec.SameStep, Seed: 4, Total: 1 << 20})
	broken, done := errors.New("broken"), make(chan error, 1)
	go func() {
		done <- p.Agent.Collect(func(k int) error {
			if k == 1 {
				return broken
			}
			return p.steps(k, 5)
		})
	}()
	select {
	case err := <-done:
		if !errors.Is(err, broken) {
			t.Errorf("error %v, want %v", err, broken)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the others still wait")
	}
}

func TestPreemptShareIsChecked(t *testing.T) {
	for _, c := range []struct {
		replicas int
		share    float64
		want     string // of the fault, "" = none
		quorum   int
		preempts bool
	}{
		{1, 0, "", 0, false}, {4, 0, "", 0, false}, {2, 0.5, "", 1, true}, {2, 0.6, "", 2, false}, {4, 0.6, "", 3, true},
		{5, 0.6, "", 3, true},
		{10, 0.7, "", 7, true}, {20, 0.55, "", 11, true}, {4, 1, "", 4, false},
		{1, 0.6, "2 replicas", 0, false}, {4, 0.4, "0.5 to 1", 0, false}, {4, 1.1, "0.5 to 1", 0, false},
		{4, -1, "0.5 to 1", 0, false}, {1, math.NaN(), "0.5 to 1", 0, false},
	} {
		cfg := DefaultConfig()
		cfg.Replicas, cfg.PreemptShare = c.replicas, c.share
		faults := fault.All(cfg.Validate())
		if c.want != "" {
			if len(faults) != 1 || faults[0].Key != "preempt_share" || !strings.Contains(faults[0].Want, c.want) {
				t.Errorf("%d replicas, share %v: %v, want one fault with %q", c.replicas, c.share, faults, c.want)
			}
			continue
		}
		if len(faults) != 0 || cfg.quorum() != c.quorum || cfg.Preempts() != c.preempts {
			t.Errorf("%d replicas, share %v: faults %v, quorum %d, preempts %v; want none, %d, %v", c.replicas, c.share, faults,
				cfg.quorum(), cfg.Preempts(), c.quorum, c.preempts)
		}
	}
	if r, err := NewReplicas(func() Config { c := small(); c.Replicas = 2; return c }(), agenttest.Plain(), 2, 1,
		1); err != nil || len(r.Collectors()) != 0 {
		t.Errorf("without a share: %d collectors (%v), want none", len(r.Collectors()), err)
	}
}

func TestCollectorsDoNotAllocate(t *testing.T) {
	cfg := small()
	cfg.Steps, cfg.Replicas, cfg.PreemptShare, cfg.NormObs = 8, 2, 0.5, true
	p := newPaces(t, cfg,
		agenttest.Setting{Env: "InvalidAction-v1", Rows: 8, Workers: 1, Autoreset: vec.SameStep, Seed: 5, Total: 1 << 30})
	steps := func() {
		for k, c := range p.Agent.Collectors() {
			p.lanes[k].seen = p.lanes[k].seen[:0]
			for c.More() {
				if err := p.step(k); err != nil {
					t.Fatal(err)
				}
			}
			p.Agent.members[k].roll.Reset()
			p.Agent.collectors[k].paid = p.Agent.collectors[k].paid[:0]
		}
		p.Agent.full.Store(0)
	}
	for range 30 { // the batches' Final columns grow
		steps()
	}
	if n := testing.AllocsPerRun(20, steps); n > 0 && !raced.On {
		t.Errorf("%v allocations", n)
	}
}
