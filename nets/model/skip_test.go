package model

import (
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/internal/rng"
	"clustergym/internal/testseed"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// queues returns n observations of slots of eight numbers, of which any number is empty. The last column says which are
// not.
func queues(seed uint64, n, slots int) []float32 {
	r := rng.Stream(seed, "queues")
	obs := noise(r, n*slots*8)
	for i := range n * slots {
		obs[i*8+7] = 1
		if r.IntN(3) > 0 {
			copy(obs[i*8:], []float32{0, 1, 1, 1, 1, 1, 1, 0})
		}
	}
	return obs
}

// With and without empty rows a network has the same parameters and gives the same logits of slots that hold something,
// bit for bit; empty ones have 0. The value does not depend on what stands in empty rows.
func TestSkippedRowsChangeNothingElse(t *testing.T) {
	const slots, n = 6, 40
	seed := testseed.Or(5)
	t.Logf("seed %d", seed)
	in := Input{{Name: "jobs", Shape: []int{slots, 8}, Filled: 8}}
	whole, err := NewActorCritic(kernelNetwork(), in, slots, rng.Stream(seed, "kernel"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := kernelNetwork()
	cfg.SkipEmpty = true
	skips, err := NewActorCritic(cfg, in, slots, rng.Stream(seed, "kernel"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(whole.Params().Data, skips.Params().Data) {
		t.Fatal("the networks begin with other parameters")
	}
	r := rng.Stream(seed, "perturb")
	perturb(whole.Params().Data, r)
	copy(skips.Params().Data, whole.Params().Data)
	obs := queues(seed, n, slots)
	wl, _ := whole.Forward(n).Run(obs, n)
	f := skips.Forward(n)
	sl, sv := f.Run(obs, n)
	sl, sv = slices.Clone(sl), slices.Clone(sv)
	held := 0
	for i := range n * slots {
		want := float32(0)
		if obs[i*8+7] > 0 {
			want = wl[i]
			held++
		}
		if sl[i] != want {
			t.Fatalf("slot %d of observation %d: logit %v, want %v", i%slots, i/slots, sl[i], want)
		}
		if obs[i*8+7] == 0 {
			obs[i*8+2] = r.Float32()
		}
	}
	if held == 0 || held == n*slots {
		t.Fatalf("%d of %d slots hold something", held, n*slots)
	}
	if _, v := f.Run(obs, n); !slices.Equal(v, sv) {
		t.Error("values depend on what stands in empty rows")
	}
}

// The gradients of weighted sums of the legal logits and of the values are those of differences.
func TestGradientsOfSkippedRows(t *testing.T) {
	const slots, n = 4, 3
	seed := testseed.Or(6)
	t.Logf("seed %d", seed)
	cfg := kernelNetwork()
	cfg.SkipEmpty, cfg.Activation, cfg.Hidden = true, "tanh", []int{5}
	in := Input{{Name: "jobs", Shape: []int{slots, 8}, Filled: 8}}
	m, err := NewActorCritic(cfg, in, slots, rng.Stream(seed, "kernel"))
	if err != nil {
		t.Fatal(err)
	}
	r := rng.Stream(seed, "gradients")
	perturb(m.Params().Data, r)
	obs := queues(seed, n, slots)
	prog, err := tape.Build(tensor.Float64, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		logits, value := m.Graph(b, b.Input("obs", n, slots*8))
		sum := op.Sum(op.Mul(logits, b.Input("c", n, slots)))
		return op.Add(sum, op.Sum(op.Square(value))), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range obs {
		prog.InputF64("obs")[i] = float64(x)
	}
	for i := range prog.InputF64("c") {
		prog.InputF64("c")[i] = r.NormFloat64()
	}
	loss := func() float64 {
		if err := prog.Run(); err != nil {
			t.Fatal(err)
		}
		return prog.Loss()
	}
	loss()
	for _, v := range m.Params().Views {
		grad := slices.Clone(prog.GradF64(v.Name))
		p := prog.ParamF64(v.Name)
		for k := range p {
			const h = 1e-6
			x := p[k]
			p[k] = x + h
			up := loss()
			p[k] = x - h
			down := loss()
			p[k] = x
			if want := (up - down) / (2 * h); grad[k]-want > 1e-5*(1+max(want, -want)) ||
				want-grad[k] > 1e-5*(1+max(want, -want)) {
				t.Errorf("%s[%d]: gradient %v, difference %v", v.Name, k, grad[k], want)
			}
		}
	}
}

func TestSkippedRowsAreRefused(t *testing.T) {
	jobs := Input{{Name: "jobs", Shape: []int{4, 8}, Filled: 8}}
	for _, c := range []struct {
		change func(*Config)
		in     Input
		want   string
	}{
		{func(c *Config) { c.Critic = "" }, jobs, `skip_empty: got true, want false, except with kind cnn and critic flat`},
		{func(*Config) {}, Input{{Name: "jobs", Shape: []int{4, 8}}, {Name: "cluster", Shape: []int{3}}},
			`want false: slots are not the rows of one table, the only field`},
		{func(*Config) {}, Input{{Name: "jobs", Shape: []int{4, 4, 2}}},
			`want false: slots are not the rows of one table, the only field`},
	} {
		cfg := kernelNetwork()
		cfg.SkipEmpty = true
		c.change(&cfg)
		if _, err := NewActorCritic(cfg, c.in, 4, rng.Stream(3, "kernel")); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
