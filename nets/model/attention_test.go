package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/rng"
)

// tables has the fields of JobSelect-v1 for k slots, r rows of running gangs and machines of 4 GPUs, as its environment
// gives them.
func tables(k, r, machines int) Input {
	return Input{
		{Name: "cluster", Shape: []int{5, 4 * machines}, Group: 4}, {Name: "global", Shape: []int{8}},
		{Name: "jobs", Shape: []int{k, 10}, Filled: 1},
		{Name: "queue", Shape: []int{5, k * 3}, Group: 3}, {Name: "running", Shape: []int{r, 6}, Filled: 2},
	}
}

func attentionCases() []netCase {
	base := Config{Kind: KindAttention, Hidden: []int{12}, Activation: "tanh", Head: "slots", SlotHidden: 7,
		Attention: Attention{Width: 8, Heads: 2, Layers: 2, Feed: 10}}
	separate := base
	separate.Separate, separate.LayerNorm = true, true
	some := base
	some.Activation, some.Hidden = "relu", nil
	some.Attention.Fields = []string{"running", "jobs", "global"}
	both := some
	both.Attention.Slots = []string{"running", "jobs"}
	each := base
	each.Head = "each"
	dense := base
	dense.Head = "dense"
	zeros := each
	zeros.Attention.Slots, zeros.Attention.Layers = []string{"rows"}, 1
	based := base
	based.Base = Base{Field: "jobs", Column: 3, Scale: -8, Wait: -9}
	return []netCase{
		{"attention slots", base, tables(6, 4, 3), 7}, {"attention slots separate", separate, tables(3, 4, 2), 4},
		{"attention some fields", some, tables(6, 4, 3), 7}, {"attention two tables", both, tables(3, 2, 1), 6},
		{"attention each", each, Input{{Name: "jobs", Shape: []int{5, 8}, Filled: 8}}, 5},
		{"attention dense", dense, tables(4, 2, 2), 3},
		{"attention told", separate, append(tables(3, 4, 2), Field{Name: "truth", Shape: []int{5}, Critic: true}), 4},
		{"attention based", based, tables(6, 4, 3), 7},
		{"attention rows of zeros", zeros, Input{{Name: "rows", Shape: []int{5, 8}}}, 5},
	}
}

// queue returns an observation of tables(k, r, machines) with that many jobs and gangs in its first rows, drawn from a
// stream of the name, so that other sizes have the same ones.
func queue(name string, k, r, machines, jobs, gangs int) []float32 {
	src := rng.Stream(6, name)
	noise := func(n int) []float32 { return noise(src, n) }
	machine, global, job, picture, gang := make([][]float32,
		8), noise(8), make([][]float32, 8), make([][]float32, 8), make([][]float32, 8)
	for i := range 8 {
		machine[i], job[i], picture[i], gang[i] = noise(5*4), noise(10), noise(5*3), noise(6)
		job[i][0], gang[i][1] = 1, 1
	}
	var obs []float32
	image := func(columns [][]float32, width, count int) {
		for row := range 5 {
			for _, c := range columns[:count] {
				obs = append(obs, c[row*width:(row+1)*width]...)
			}
		}
	}
	table := func(rows [][]float32, width, filled, count int) {
		for i := range count {
			if i < filled {
				obs = append(obs, rows[i]...)
			} else {
				obs = append(obs, make([]float32, width)...)
			}
		}
	}
	image(machine, 4, machines)
	obs = append(obs, global...)
	table(job, 10, jobs, k)
	for i := jobs; i < k; i++ {
		clear(picture[i])
	}
	image(picture, 3, k)
	table(gang, 6, gangs, r)
	return obs
}

func attentionNet(t *testing.T, k, r, machines int) *ActorCritic {
	t.Helper()
	c := attentionCases()[0]
	c.cfg.Attention.Fields = []string{"cluster", "global", "jobs", "running"}
	ac, err := NewActorCritic(c.cfg, tables(k, r, machines), k+1, rng.Stream(3, "weights"))
	if err != nil {
		t.Fatal(err)
	}
	perturb(ac.Params().Data, rng.Stream(3, "more"))
	return ac
}

// One set of weights serves every number of slots, rows and machines, and empty rows change nothing but rounding.
func TestAttentionServesEverySize(t *testing.T) {
	small, large := attentionNet(t, 3, 2, 2), attentionNet(t, 8, 6, 2)
	if err := large.Params().CopyFrom(small.Params()); err != nil {
		t.Fatal(err)
	}
	x, v := small.Forward(1).Run(queue("queue", 3, 2, 2, 3, 2), 1)
	y, w := large.Forward(1).Run(queue("queue", 8, 6, 2, 3, 2), 1)
	if !slices.Equal(x[:3], y[:3]) || x[3] != y[8] || v[0] != w[0] {
		t.Errorf("logits %v and value %v with 3 slots and 2 rows; %v and %v with 8 and 6", x, v, y, w)
	}
	if x[0] == x[1] || y[3] != y[7] {
		t.Errorf("logits %v: want those of jobs to differ and those of empty slots to be equal: %v", x, y[3:])
	}
	// More machines change the state.
	more := attentionNet(t, 3, 2, 8)
	if err := more.Params().CopyFrom(small.Params()); err != nil {
		t.Fatal(err)
	}
	if z, u := more.Forward(1).Run(queue("queue", 3, 2, 8, 3, 2), 1); z[0] == x[0] || u[0] == v[0] {
		t.Errorf("6 more machines change nothing: logits %v, value %v", z, u)
	}
}

// Jobs in other slots have their logits there; gangs and machines in another order change nothing, up to rounding.
func TestAttentionIsEquivariant(t *testing.T) {
	const k, r, machines = 6, 4, 3
	net := attentionNet(t, k, r, machines)
	f := net.Forward(1)
	obs := queue("equivariance", k, r, machines, 5, 3)
	x, v := f.Run(obs, 1)
	logits, value := slices.Clone(x), v[0]
	turned := slices.Clone(obs)
	src := rng.Stream(9, "order")
	order := src.Perm(k)
	jobs := 5*4*machines + 8
	for i, j := range order {
		copy(turned[jobs+10*i:jobs+10*(i+1)], obs[jobs+10*j:])
	}
	for i, j := range src.Perm(machines) {
		for row := range 5 {
			copy(turned[row*4*machines+4*i:][:4], obs[row*4*machines+4*j:])
		}
	}
	gangs := jobs + 10*k + 5*3*k
	for i, j := range src.Perm(r) {
		copy(turned[gangs+6*i:gangs+6*(i+1)], obs[gangs+6*j:])
	}
	y, w := f.Run(turned, 1)
	near := func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 }
	for i, j := range order {
		if !near(y[i], logits[j]) {
			t.Errorf("slot %d is now %d: its logit is %v, was %v", j, i, y[i], logits[j])
		}
	}
	if !near(y[k], logits[k]) || !near(w[0], value) {
		t.Errorf("waiting %v, value %v; were %v and %v", y[k], w[0], logits[k], value)
	}
}

func TestFaultsOfAttention(t *testing.T) {
	good := attentionCases()[0]
	for _, c := range []struct {
		change func(c *netCase)
		want   string
	}{
		{func(c *netCase) { c.cfg.Attention.Width = 10; c.cfg.Attention.Heads = 4 },
			`attention.heads: got 4, want a number that divides attention.width, 10`},
		{func(c *netCase) { c.cfg.Attention.Width = -1 }, `attention.width: got -1, want a number from 1 to 65536`},
		{func(c *netCase) { c.cfg.Attention.Layers = 65 }, `attention.layers: got 65, want a number from 1 to 64`},
		{func(c *netCase) { c.cfg.Attention.Feed = 1 << 20 }, `attention.feed: got 1048576, want a number from 1 to 65536`},
		{func(c *netCase) { c.cfg.Attention.Slots = []string{"jobs", "jobs"} },
			`attention.slots[1]: got "jobs", want the name of a field, each once`},
		{func(c *netCase) { c.cfg.Attention.Slots = []string{"job"} },
			`attention.slots[0]: got "job", want one of [cluster global jobs queue running]`},
		{func(c *netCase) { c.cfg.Attention.Fields = []string{"job"} },
			`attention.fields[0]: got "job", want one of [cluster global jobs queue running]`},
		{func(c *netCase) {
			c.cfg.Attention.Fields, c.cfg.Attention.Slots = []string{"running"}, []string{"jobs"}
		}, `attention.slots[0]: got "jobs", want one of attention.fields`},
		{func(c *netCase) { c.cfg.Attention.Slots = []string{"queue"} },
			`attention.slots: got "queue", want tables [rows, columns]; the shape of this field is [5 18]`},
		{func(c *netCase) { c.cfg.Attention.Slots = []string{"running"} },
			`attention.slots: got "[running]", want tables with 6 rows in all, one for each action that stands for a row; these have 4`},
		{func(c *netCase) { c.actions = 12 },
			`attention.slots: got "nothing", want the tables whose rows the actions stand for: none has as many rows as there are such actions, 11`},
		{func(c *netCase) { c.in = tables(6, 6, 3) },
			`attention.slots: got "nothing", want the tables whose rows the actions stand for: jobs, running have as many rows as there are such actions, 6`},
		{func(c *netCase) { c.cfg.Head = "dense"; c.in = Input{{Name: "x", Shape: []int{3}}} },
			`kind: got "attention", want another kind: no field of the observation is a table with rows that may be empty or an image with groups of columns`},
		{func(c *netCase) { c.cfg.Branches = []Branch{{Field: "jobs"}} }, `branches: got 1, want none with kind attention`},
		{func(c *netCase) { c.cfg.Kind, c.cfg.Head = "mlp", "dense" }, `attention: got "{Width:8`},
	} {
		bad := good
		c.change(&bad)
		_, err := NewActorCritic(bad.cfg, bad.in, bad.actions, rng.Stream(1, "bad"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	var def Config
	def.Kind, def.Activation, def.Head, def.SlotHidden = KindAttention, "relu", "slots", 8
	ac, err := NewActorCritic(def, tables(6, 4, 3), 7, rng.Stream(1, "default"))
	if err != nil {
		t.Fatal(err)
	}
	if got := ac.Params().View("attention.1.feed.0.weight").Shape; fmt.Sprint(got) != "[64 128]" {
		t.Errorf("feed-forward of the default network has shape %v, want [64 128]", got)
	}
}
