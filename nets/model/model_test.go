package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/nets/tape"
)

// jobSelect has the fields of the environment JobSelect-v1 for 10 slots.
var jobSelect = Input{{Name: "cluster", Shape: []int{20, 32}}, {Name: "global", Shape: []int{8}},
	{Name: "jobs", Shape: []int{10, 10}}, {Name: "queue", Shape: []int{20, 80}}}

const jobSelectActions = 11

// branches returns a network for jobSelect: an image of the cluster, and the queue and the job table slot by slot.
// size 4 is the normal size, 1 the one for tests.
func branches(head string, size int) Config {
	return Config{Kind: "cnn", Hidden: []int{64 * size}, Activation: "relu", Head: head, SlotHidden: 16 * size,
		Branches: []Branch{
			{Field: "queue", Slots: true, Convs: []Conv{{Filters: 8 * size, Kernel: [2]int{20, 8}, Stride: [2]int{20, 8}}}},
			{Field: "jobs", Slots: true, Convs: []Conv{{Filters: 8 * size, Kernel: [2]int{1, 10}, Stride: [2]int{1, 10}}}},
			{Field: "cluster", Convs: []Conv{
				{Filters: 4 * size, Kernel: [2]int{4, 4}, Stride: [2]int{2, 2}},
				{Filters: 8 * size, Kernel: [2]int{3, 3}, Stride: [2]int{2, 2}}}, Dense: []int{16 * size}},
		}}
}

type netCase struct {
	name    string
	cfg     Config
	in      Input
	actions int
}

func netCases() []netCase {
	mlp := DefaultConfig()
	shared := mlp
	shared.Separate, shared.Activation = false, "relu"
	normed := shared
	normed.LayerNorm = true
	none := shared
	none.Hidden = nil
	slotsSeparate := branches("slots", 1)
	slotsSeparate.Separate, slotsSeparate.LayerNorm = true, true
	// Padding, several channels, dense layers in branches, slots without convolutions, a field without a branch.
	odd := Config{Kind: "cnn", Hidden: []int{10}, Activation: "tanh", Head: "slots", SlotHidden: 7, Branches: []Branch{
		{Field: "image", Convs: []Conv{{Filters: 3, Kernel: [2]int{3, 2}, Pad: [2]int{1, 1}},
			{Filters: 2, Kernel: [2]int{2, 2}, Stride: [2]int{1, 2}}}, Dense: []int{5}},
		{Field: "table", Slots: true, Dense: []int{6, 4}},
		{Field: "line", Slots: true, Convs: []Conv{{Filters: 3, Kernel: [2]int{1, 2}, Stride: [2]int{1, 2}}}},
	}}
	oddIn := Input{{Name: "extra", Shape: []int{3}}, {Name: "image", Shape: []int{5, 4, 2}},
		{Name: "line", Shape: []int{1, 6}}, {Name: "table", Shape: []int{3, 4}}}
	oddDense := odd
	oddDense.Head = "dense"
	flat := Input{{Name: "obs", Shape: []int{9}}}
	each := Config{Kind: "cnn", Hidden: []int{10}, Activation: "relu", Head: "each", SlotHidden: 7,
		Branches: []Branch{{Field: "table", Slots: true, Dense: []int{6}}}}
	kernels := each
	kernels.Separate = true
	rows := Input{{Name: "table", Shape: []int{4, 5}}}
	flattened, flatShared := kernels, each
	flattened.Critic, flatShared.Critic = "flat", "flat"
	residual := func(c Config, b Base) Config {
		c.Base = b
		return c
	}
	// Two tables whose rows are the actions: the jobs that can start, in a table and an image, and the gangs that run.
	two := Config{Kind: "cnn", Hidden: []int{10}, Activation: "relu", Head: "slots", SlotHidden: 7, Branches: []Branch{
		{Field: "jobs", Slots: true, Dense: []int{6}}, {Field: "queue", Slots: true, Convs: []Conv{{Filters: 3}}},
		{Field: "running", Slots: true, Dense: []int{5}},
	}}
	twoSeparate := two
	twoSeparate.Separate = true
	twoIn := Input{{Name: "global", Shape: []int{3}}, {Name: "jobs", Shape: []int{4, 5}},
		{Name: "queue", Shape: []int{3, 8}, Group: 2}, {Name: "running", Shape: []int{2, 6}}}
	twoAlone := two
	twoAlone.Head = "each"
	// A field that only the critic sees, behind the others.
	told := func(in Input) Input {
		return append(slices.Clone(in), Field{Name: "truth", Shape: []int{5}, Critic: true})
	}
	job := Base{Field: "jobs", Column: 3, Scale: -8, Wait: -9}
	return append(attentionCases(), []netCase{
		{"cnn slots based", residual(branches("slots", 1), job), jobSelect, jobSelectActions},
		{"cnn slots separate based", residual(slotsSeparate, job), jobSelect, jobSelectActions},
		{"mlp based", residual(mlp, Base{Field: "obs", Scale: 2}),
			Input{{Name: "a", Shape: []int{2}}, {Name: "obs", Shape: []int{3}}}, 4},
		{"each based", residual(each, Base{Field: "table", Column: 4, Scale: 1}), rows, 4},
		{"two tables", two, twoIn, 7}, {"two tables separate", twoSeparate, twoIn, 7},
		{"two tables of as many rows", two, slices.Concat(twoIn[:3], Input{{Name: "running", Shape: []int{4, 6}}}), 9},
		{"two tables each", twoAlone, twoIn, 6}, {"two tables each alone", twoAlone, twoIn[1:], 6},
		{"mlp told", mlp, told(flat), 4}, {"mlp shared told", shared, told(flat), 4},
		{"cnn told", slotsSeparate, told(jobSelect), jobSelectActions},
		{"cnn shared told", branches("slots", 1), told(jobSelect), jobSelectActions}, {"each told", each, told(rows), 4},
		{"each alone", each, rows, 4}, {"each alone separate", kernels, rows, 4},
		{"each alone flat", flatShared, rows, 4}, {"each alone flat separate", flattened, rows, 4},
		{"each", each, Input{{Name: "extra", Shape: []int{3}}, {Name: "table", Shape: []int{4, 5}}}, 4},
		{"mlp", mlp, flat, 4}, {"mlp shared", shared, flat, 4}, {"mlp norm", normed, flat, 4}, {"linear", none, flat, 4},
		{"cnn dense", branches("dense", 1), jobSelect, jobSelectActions},
		{"cnn slots", branches("slots", 1), jobSelect, jobSelectActions},
		{"cnn slots separate", slotsSeparate, jobSelect, jobSelectActions}, {"odd slots", odd, oddIn, 4},
		{"odd dense", oddDense, oddIn, 4},
	}...)
}

func noise(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func maskOf(r *rand.Rand, n, a int) []bool {
	m := make([]bool, n*a)
	for i := range m {
		m[i] = r.IntN(3) > 0 || i%a == a-1
	}
	return m
}

func asFloats(m []bool) []float32 {
	x := make([]float32, len(m))
	for i, ok := range m {
		if ok {
			x[i] = 1
		}
	}
	return x
}

func TestForwardHasTheBitsOfTheGraph(t *testing.T) {
	for _, c := range netCases() {
		t.Run(c.name, func(t *testing.T) {
			r := rng.Stream(1, c.name)
			const n = 5
			obs, mask := noise(r, n*c.in.Size()), maskOf(r, n, c.actions)
			ac, err := NewActorCritic(c.cfg, c.in, c.actions, r)
			if err != nil {
				t.Fatal(err)
			}
			perturb(ac.Params().Data, r) // so that biases are not 0
			p, err := tape.Build(tensor.Float32, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
				l, v := ac.Graph(b, b.Input("obs", n, c.in.Size()))
				return nil, []*gorgonia.Node{l, v}
			})
			if err != nil {
				t.Fatal(err)
			}
			copy(p.Input("obs"), obs)
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
			logits, value := ac.Forward(n+3).Run(obs, n)
			sameBits(t, "logits", logits, p.Output(0))
			sameBits(t, "value", value, p.Output(1))

			for _, duelling := range []bool{false, true} {
				for _, m := range [][]bool{nil, mask} {
					q, err := NewQNet(c.cfg, c.in, c.actions, duelling, r)
					if err != nil {
						t.Fatal(err)
					}
					perturb(q.Params().Data, r)
					p, err := tape.Build(tensor.Float32, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
						obs := b.Input("obs", n, c.in.Size())
						if m == nil {
							return nil, []*gorgonia.Node{q.Graph(b, obs, nil)}
						}
						return nil, []*gorgonia.Node{q.Graph(b, obs, b.Input("mask", n, c.actions))}
					})
					if err != nil {
						t.Fatal(err)
					}
					copy(p.Input("obs"), obs)
					copy(p.Input("mask"), asFloats(m))
					if err := p.Run(); err != nil {
						t.Fatal(err)
					}
					sameBits(t, fmt.Sprintf("q, duelling %v, mask %v", duelling, m != nil), q.Forward(n).Run(obs, m, n), p.Output(0))
				}
			}
		})
	}
}

func perturb(x []float32, r *rand.Rand) {
	for i := range x {
		x[i] += float32(0.1 * r.NormFloat64())
	}
}

func sameBits(t *testing.T, name string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%s: %d elements, want %d and not 0", name, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) || got[i] != got[i] {
			t.Fatalf("%s[%d] = %v, want %v", name, i, got[i], want[i])
		}
	}
}

func TestARowsBitsDoNotDependOnTheOtherRows(t *testing.T) {
	for _, c := range netCases() {
		r := rng.Stream(21, c.name)
		const n = 7
		obs, mask := noise(r, n*c.in.Size()), maskOf(r, n, c.actions)
		ac, err := NewActorCritic(c.cfg, c.in, c.actions, r)
		if err != nil {
			t.Fatal(err)
		}
		q, err := NewQNet(c.cfg, c.in, c.actions, true, r)
		if err != nil {
			t.Fatal(err)
		}
		logits, value := ac.Forward(n).Run(obs, n)
		qs := q.Forward(n).Run(obs, mask, n)
		one, oneQ := ac.Forward(1), q.Forward(1)
		for i := range n {
			row := obs[i*c.in.Size() : (i+1)*c.in.Size()]
			l, v := one.Run(row, 1)
			sameBits(t, c.name+" logits", l, logits[i*c.actions:(i+1)*c.actions])
			sameBits(t, c.name+" value", v, value[i:i+1])
			sameBits(t, c.name+" q", oneQ.Run(row, mask[i*c.actions:(i+1)*c.actions], 1), qs[i*c.actions:(i+1)*c.actions])
		}
	}
}

func TestForwardDoesNotAllocate(t *testing.T) {
	for _, c := range netCases() {
		r := rng.Stream(22, c.name)
		obs, mask := noise(r, 5*c.in.Size()), maskOf(r, 5, c.actions)
		ac, _ := NewActorCritic(c.cfg, c.in, c.actions, r)
		q, _ := NewQNet(c.cfg, c.in, c.actions, true, r)
		f, g := ac.Forward(5), q.Forward(5)
		if n := testing.AllocsPerRun(10, func() { f.Run(obs, 5); g.Run(obs, mask, 5); g.Run(obs, nil, 3) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// With head slots, swapping two slots swaps their logits and leaves the rest unchanged, up to the rounding of the
// mean over slots.
func TestSlotsAreScoredAlike(t *testing.T) {
	cfg := branches("slots", 1)
	r := rng.Stream(23, "slots")
	ac, err := NewActorCritic(cfg, jobSelect, jobSelectActions, r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ac.Params().Data { // policy heads start so small that everything is nearly equal
		ac.Params().Data[i] += float32(0.2 * r.NormFloat64())
	}
	obs := noise(r, jobSelect.Size())
	f := ac.Forward(1)
	before, v := f.Run(obs, 1)
	logits, value := append([]float32(nil), before...), v[0]
	const a, b = 2, 7
	jobs := obs[640+8 : 640+8+100]
	queue := obs[640+8+100:]
	for i := range 10 {
		jobs[a*10+i], jobs[b*10+i] = jobs[b*10+i], jobs[a*10+i]
	}
	for h := range 20 {
		for m := range 8 {
			x, y := h*80+a*8+m, h*80+b*8+m
			queue[x], queue[y] = queue[y], queue[x]
		}
	}
	logits[a], logits[b] = logits[b], logits[a]
	if math.Abs(float64(logits[a]-logits[b])) < 1e-2 {
		t.Fatalf("slots %d and %d score alike: the test shows nothing", a, b)
	}
	after, v := f.Run(obs, 1)
	for i := range after {
		if math.Abs(float64(after[i]-logits[i])) > 1e-5 {
			t.Errorf("logit %d = %v, want %v", i, after[i], logits[i])
		}
	}
	if math.Abs(float64(v[0]-value)) > 1e-5 {
		t.Errorf("value %v, want %v", v[0], value)
	}
}

// The actions of two tables follow the order of their rows, each in its own table.
func TestTwoTablesAreScoredRowByRow(t *testing.T) {
	cfg := Config{Kind: "cnn", Hidden: []int{12}, Activation: "tanh", Head: "slots", SlotHidden: 7, Branches: []Branch{
		{Field: "jobs", Slots: true, Dense: []int{6}}, {Field: "running", Slots: true, Dense: []int{5}},
	}}
	in := Input{{Name: "global", Shape: []int{3}}, {Name: "jobs", Shape: []int{4, 5}},
		{Name: "running", Shape: []int{3, 6}}}
	r := rng.Stream(29, "tables")
	ac, err := NewActorCritic(cfg, in, 8, r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ac.Params().Data {
		ac.Params().Data[i] += float32(0.3 * r.NormFloat64())
	}
	obs := noise(r, in.Size())
	f := ac.Forward(1)
	swap := func(x []float32, a, b, width int) {
		for i := range width {
			x[a*width+i], x[b*width+i] = x[b*width+i], x[a*width+i]
		}
	}
	for _, x := range []struct{ from, width, a, b, first int }{{3, 5, 0, 2, 0}, {23, 6, 1, 2, 4}} {
		before, _ := f.Run(obs, 1)
		want := slices.Clone(before)
		a, b := x.first+x.a, x.first+x.b
		if math.Abs(float64(want[a]-want[b])) < 1e-3 {
			t.Fatalf("actions %d and %d score alike: the test shows nothing", a, b)
		}
		want[a], want[b] = want[b], want[a]
		swap(obs[x.from:], x.a, x.b, x.width)
		after, _ := f.Run(obs, 1)
		for i := range after {
			if math.Abs(float64(after[i]-want[i])) > 1e-5 {
				t.Errorf("rows %d and %d of the field at %d are swapped: logit %d is %v, want %v", x.a, x.b, x.from, i, after[i],
					want[i])
			}
		}
	}
}

func TestInitialisation(t *testing.T) {
	ac, err := NewActorCritic(branches("dense", 1), jobSelect, jobSelectActions, rng.Stream(24, "init"))
	if err != nil {
		t.Fatal(err)
	}
	gain := func(name string) float64 { // of each column of an orthogonal matrix with more rows than columns
		v := ac.Params().View(name)
		if v == nil {
			t.Fatalf("no parameter %q; there are %v", name, names(ac.Params().Views))
		}
		cols, s := v.Shape[len(v.Shape)-1], 0.0
		for i := 0; i < len(v.Data); i += cols {
			s += float64(v.Data[i]) * float64(v.Data[i])
		}
		return math.Sqrt(s)
	}
	for name, want := range map[string]float64{"policy.weight": 0.01, "value.weight": 1, "trunk.0.weight": math.Sqrt2,
		"queue.conv.0.weight": math.Sqrt2, "cluster.dense.0.weight": math.Sqrt2} {
		if g := gain(name); math.Abs(g-want) > 1e-5 {
			t.Errorf("%s has gain %v, want %v", name, g, want)
		}
	}
	for _, v := range ac.Params().Views {
		if len(v.Shape) == 1 && v.Data[0] != 0 {
			t.Errorf("bias %s begins at %v", v.Name, v.Data[0])
		}
	}
	again, _ := NewActorCritic(branches("dense", 1), jobSelect, jobSelectActions, rng.Stream(24, "init"))
	sameBits(t, "parameters", again.Params().Data, ac.Params().Data)
	// The policy starts nearly uniform.
	logits, _ := ac.Forward(1).Run(noise(rng.Stream(25, "obs"), jobSelect.Size()), 1)
	for _, l := range logits {
		if math.Abs(float64(l)) > 0.2 {
			t.Errorf("logit %v at the beginning", l)
		}
	}
}

// Weights and biases are within 1/sqrt(inputs) and fill that range evenly; a bias uses the inputs of its layer.
func TestInitialisationByFanIn(t *testing.T) {
	cfg := branches("dense", 4)
	cfg.Init = "fan-in"
	q, err := NewQNet(cfg, jobSelect, jobSelectActions, true, rng.Stream(27, "init"))
	if err != nil {
		t.Fatal(err)
	}
	bound := 0.0
	for _, v := range q.Params().Views {
		if len(v.Shape) > 1 { // a layer's bias follows its weight
			bound = 1 / math.Sqrt(float64(v.Size()/v.Shape[len(v.Shape)-1]))
		}
		most, squares := 0.0, 0.0
		for _, x := range v.Data {
			most = max(most, math.Abs(float64(x)))
			squares += float64(x) * float64(x)
		}
		if most > bound || len(v.Data) > 10 && most < 0.8*bound {
			t.Errorf("%s: the largest of %d numbers is %v, want nearly %v", v.Name, len(v.Data), most, bound)
		}
		if variance := squares / float64(len(v.Data)); len(v.Data) > 200 && math.Abs(variance/(bound*bound/3)-1) > 0.2 {
			t.Errorf("%s: variance %v, want %v", v.Name, variance, bound*bound/3)
		}
	}
	cfg.Init = "zeros"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "init") {
		t.Errorf("init zeros: got %v", err)
	}
}

func names(vs []nets.View) []string {
	var ns []string
	for _, v := range vs {
		ns = append(ns, v.Name)
	}
	return ns
}

func TestSeparateSharesNothing(t *testing.T) {
	cfg := DefaultConfig()
	in := Input{{Name: "obs", Shape: []int{4}}}
	ac, err := NewActorCritic(cfg, in, 3, rng.Stream(26, "x"))
	if err != nil {
		t.Fatal(err)
	}
	f := ac.Forward(1)
	obs := []float32{1, 2, 3, 4}
	l, v := f.Run(obs, 1)
	logits, value := append([]float32(nil), l...), v[0]
	for _, w := range ac.Params().Views {
		if strings.HasPrefix(w.Name, "critic.") {
			for i := range w.Data {
				w.Data[i] += 1
			}
		} else if !strings.HasPrefix(w.Name, "actor.") {
			t.Errorf("parameter %q is neither the actor's nor the critic's", w.Name)
		}
	}
	l, v = f.Run(obs, 1)
	sameBits(t, "logits", l, logits)
	if v[0] == value {
		t.Error("the value does not depend on the critic")
	}
}

func TestEveryFaultIsReported(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	cfg := Config{Kind: "cnn", Hidden: []int{8, 0}, Activation: "gelu", Head: "slots", Branches: []Branch{
		{Field: "a", Dense: []int{-1},
			Convs: []Conv{{Filters: 0, Kernel: [2]int{0, 2}, Stride: [2]int{-1, 1}, Pad: [2]int{2, 2}}}}, {Field: "a"}}}
	var keys []string
	for _, f := range fault.All(cfg.Validate()) {
		keys = append(keys, f.Key)
	}
	want := []string{"activation", "hidden[1]", "branches[0].dense[0]", "branches[0].convs[0].filters",
		"branches[0].convs[0].kernel",
		"branches[0].convs[0].stride", "branches[0].convs[0].pad", "branches[1].field", "head", "slot_hidden"}
	if !slices.Equal(keys, want) {
		t.Errorf("faults of %v, want %v", keys, want)
	}
	mlp := DefaultConfig()
	mlp.Head, mlp.Branches = "slots", []Branch{{Field: "obs"}}
	if n := len(fault.All(mlp.Validate())); n != 2 {
		t.Errorf("%d faults of branches and slots in an mlp, want 2", n)
	}
}

func TestConfigurationsThatDoNotFitTheObservation(t *testing.T) {
	bad := func(f func(c *Config)) Config {
		c := branches("slots", 1)
		f(&c)
		return c
	}
	for _, c := range []struct {
		name, want string
		cfg        Config
		actions    int
	}{
		{"unknown field", `branches[1].field: got "job", want one of [cluster global jobs queue]`,
			bad(func(c *Config) { c.Branches[1].Field = "job" }), 11},
		{"slots and actions", "branches[0].slots: got 10, want 11 positions", branches("slots", 1), 12},
		{"kernel too large", "branches[2].convs[1].kernel",
			bad(func(c *Config) { c.Branches[2].Convs[1].Kernel = [2]int{12, 3} }), 11},
		{"not an image", "branches[2].field", bad(func(c *Config) { c.Branches[2].Field = "global" }), 11},
		{"no actions", "actions: got 0", branches("dense", 1), 0},
		{"each and actions", "branches[0].slots: got 10, want 11 positions at the end, one for each slot (actions)",
			branches("each", 1), 11},
		{"only wait", "actions: got 1", branches("slots", 1), 1},
		{"bad by itself", "kind", Config{}, 3},
		{"unknown base", `base.field: got "job", want one of [cluster global jobs queue]`,
			bad(func(c *Config) { c.Base = Base{Field: "job", Scale: 1} }), 11},
		{"base of no slots",
			"base.field: got \"queue\", want a field with a row for each slot, at most the 11 actions; its shape is [20 80]",
			bad(func(c *Config) { c.Base = Base{Field: "queue", Scale: 1} }), 11},
		{"base of no column", "base.column: got 10, want 0 to 9",
			bad(func(c *Config) { c.Base = Base{Field: "jobs", Column: 10, Scale: 1} }), 11},
		{"base without scale", "base.scale: got 0", bad(func(c *Config) { c.Base = Base{Field: "jobs"} }), 11},
		{"base without field", "base.field: got \"\"", bad(func(c *Config) { c.Base = Base{Scale: 1} }), 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewActorCritic(c.cfg, jobSelect, c.actions, rng.Stream(1, "x"))
			_, err2 := NewQNet(c.cfg, jobSelect, c.actions, true, rng.Stream(1, "x"))
			for _, e := range []error{err, err2} {
				if e == nil || !strings.Contains(e.Error(), c.want) || len(fault.All(e)) == 0 {
					t.Errorf("error %v, want faults with %q", e, c.want)
				}
			}
		})
	}
	if _, err := NewActorCritic(DefaultConfig(), nil, 3, rng.Stream(1, "x")); err == nil {
		t.Error("an empty observation was accepted")
	}
}

// With head each an action's value depends neither on the contents of the other slots nor on their number, so weights
// learnt with few slots can be used with many.
func TestHeadEachScoresEverySlotForItself(t *testing.T) {
	cfg := Config{Kind: "cnn", Hidden: []int{12}, Activation: "relu", Head: "each", SlotHidden: 8,
		Branches: []Branch{{Field: "table", Slots: true, Dense: []int{6}}}}
	in := func(slots int) Input {
		return Input{{Name: "table", Shape: []int{slots, 5}}, {Name: "task", Shape: []int{3}}}
	}
	few, err := NewQNet(cfg, in(3), 3, false, rng.Stream(1, "each"))
	if err != nil {
		t.Fatal(err)
	}
	many, err := NewQNet(cfg, in(9), 9, false, rng.Stream(2, "each"))
	if err != nil {
		t.Fatal(err)
	}
	if err := many.Params().CopyFrom(few.Params()); err != nil {
		t.Fatal(err)
	}
	r := rng.Stream(3, "each")
	large := noise(r, 9*5+3)
	q := slices.Clone(many.Forward(1).Run(large, nil, 1))
	for _, pick := range [][]int{{0, 1, 2}, {8, 3, 8}, {5, 7, 0}} {
		var small []float32
		for _, s := range pick {
			small = append(small, large[s*5:(s+1)*5]...)
		}
		got := few.Forward(1).Run(append(small, large[45:]...), nil, 1)
		for k, s := range pick {
			if math.Float32bits(got[k]) != math.Float32bits(q[s]) {
				t.Errorf("slot %d has %v among nine, %v among %v", s, q[s], got[k], pick)
			}
		}
	}
}

// With head each and nothing but the slots, an action's logit depends on its slot alone, and the value on all slots but
// not on their order.
func TestHeadEachOverSlotsAlone(t *testing.T) {
	const slots, width = 4, 5
	for _, separate := range []bool{false, true} {
		cfg := Config{Kind: "cnn", Hidden: []int{12}, Activation: "relu", Head: "each", SlotHidden: 8, Separate: separate,
			Branches: []Branch{{Field: "table", Slots: true, Dense: []int{6}}}}
		r := rng.Stream(4, "each alone")
		ac, err := NewActorCritic(cfg, Input{{Name: "table", Shape: []int{slots, width}}}, slots, r)
		if err != nil {
			t.Fatal(err)
		}
		perturb(ac.Params().Data, r) // the policy's head begins near 0
		obs := noise(r, slots*width)
		run := func(obs []float32) ([]float32, float32) {
			logits, value := ac.Forward(1).Run(obs, 1)
			return slices.Clone(logits), value[0]
		}
		logits, value := run(obs)
		other := slices.Clone(obs)
		for i := range width {
			other[i] += 2 // another job in slot 0
		}
		changed, changedValue := run(other)
		if changedValue == value || changed[0] == logits[0] {
			t.Errorf("separate %v: with another job in slot 0 the value is %v and was %v, its logit is %v and was %v", separate,
				changedValue, value, changed[0], logits[0])
		}
		sameBits(t, "logits of the other slots", changed[1:], logits[1:])
		turned := append(slices.Clone(obs[width:]), obs[:width]...) // every slot moves up by one
		moved, movedValue := run(turned)
		if math.Abs(float64(movedValue-value)) > 1e-5 {
			t.Errorf("separate %v: value %v, and %v in another order", separate, value, movedValue)
		}
		sameBits(t, "logits in another order", moved, append(slices.Clone(logits[1:]), logits[0]))
	}
	// Action values without a duelling head need no trunk at all: the kernel's three layers are all there is.
	q, err := NewQNet(Config{Kind: "cnn", Hidden: []int{12}, Activation: "relu", Head: "each", SlotHidden: 8,
		Branches: []Branch{{Field: "table", Slots: true, Dense: []int{6}}}},
		Input{{Name: "table", Shape: []int{slots, width}}}, slots, false, rng.Stream(5, "each alone"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(q.Params().Views),
		[]string{"table.dense.0.weight", "table.dense.0.bias", "q.slot.weight", "q.slot.bias", "q.each.weight",
			"q.each.bias"}; !slices.Equal(got, want) {
		t.Errorf("parameters %v, want %v", got, want)
	}
}

// A new network's scores are the base to the bit: the heads' share is 0 in every state.
func TestANewNetworkOverABaseIsTheBase(t *testing.T) {
	const n = 6
	for _, init := range []string{"orthogonal", fanIn} {
		for _, c := range netCases() {
			if c.cfg.Base.Field == "" {
				continue
			}
			c.cfg.Init = init
			r := rng.Stream(31, c.name)
			obs := noise(r, n*c.in.Size())
			ac, err := NewActorCritic(c.cfg, c.in, c.actions, r)
			if err != nil {
				t.Fatal(err)
			}
			q, err := NewQNet(c.cfg, c.in, c.actions, false, r)
			if err != nil {
				t.Fatal(err)
			}
			b, want := c.cfg.Base, make([]float32, 0, n*c.actions)
			at, slots, wide := 0, 0, 0
			for _, f := range c.in {
				if f.Name == b.Field {
					slots = f.Shape[0]
					wide = f.Size() / slots
					break
				}
				at += f.Size()
			}
			for i := range n {
				for k := range c.actions {
					x := float32(b.Wait)
					if k < slots {
						x = float32(b.Scale) * obs[i*c.in.Size()+at+k*wide+b.Column]
					}
					want = append(want, x)
				}
			}
			logits, _ := ac.Forward(n).Run(obs, n)
			sameBits(t, c.name+" logits", logits, want)
			sameBits(t, c.name+" values", q.Forward(n).Run(obs, nil, n), want)
		}
	}
}

// What only critics may see changes values, and neither logits nor action values.
func TestOnlyTheCriticSeesWhatIsForCritics(t *testing.T) {
	const n = 4
	seen := 0
	for _, c := range netCases() {
		public, ok := c.in.public()
		if !ok || len(public) == len(c.in) {
			continue
		}
		seen++
		r := rng.Stream(33, c.name)
		ac, err := NewActorCritic(c.cfg, c.in, c.actions, r)
		if err != nil {
			t.Fatal(err)
		}
		q, err := NewQNet(c.cfg, c.in, c.actions, true, r)
		if err != nil {
			t.Fatal(err)
		}
		perturb(ac.Params().Data, r)
		obs := noise(r, n*c.in.Size())
		run := func() (logits, value, q2 []float32) {
			l, v := ac.Forward(n).Run(obs, n)
			return slices.Clone(l), slices.Clone(v), slices.Clone(q.Forward(n).Run(obs, nil, n))
		}
		l1, v1, q1 := run()
		for i := range n {
			for k := public.Size(); k < c.in.Size(); k++ {
				obs[i*c.in.Size()+k] = float32(r.NormFloat64())
			}
		}
		l2, v2, q2 := run()
		sameBits(t, c.name+" logits", l2, l1)
		sameBits(t, c.name+" action values", q2, q1)
		for i := range v1 {
			if v1[i] == v2[i] {
				t.Errorf("%s: the value of row %d does not depend on it", c.name, i)
			}
		}
	}
	if seen < 5 {
		t.Errorf("%d cases", seen)
	}
	mixed := Input{{Name: "truth", Shape: []int{2}, Critic: true}, {Name: "obs", Shape: []int{3}}}
	if _, err := NewActorCritic(DefaultConfig(), mixed, 2, rng.Stream(1, "x")); err == nil ||
		!strings.Contains(err.Error(), "behind all others") {
		t.Errorf("a field for critics in front: %v", err)
	}
	hidden := branches("slots", 1)
	hidden.Branches = append(hidden.Branches, Branch{Field: "truth"})
	in := append(slices.Clone(jobSelect), Field{Name: "truth", Shape: []int{5}, Critic: true})
	if _, err := NewActorCritic(hidden, in, jobSelectActions, rng.Stream(1, "x")); err == nil ||
		!strings.Contains(err.Error(), `branches[3].field: got "truth"`) {
		t.Errorf("a branch over a field for critics: %v", err)
	}
}
