package export_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clustergym/nets/model"
	"clustergym/nets/onnx"
	"clustergym/nets/onnx/export"
	"clustergym/nets/onnx/run"
)

// near holds that two results agree to 1e-6, relative to the largest of them; after layer norms, which divide by
// deviations that may be small, to 1e-5.
func near(t interface {
	Fatalf(string, ...any)
	Helper()
}, what string, got, want []float32, tolerance float64,
) {
	t.Helper()
	scale := 1.0
	for _, x := range want {
		scale = max(scale, math.Abs(float64(x)))
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tolerance*scale) {
			t.Fatalf("%s: number %d is %v, want %v (scale %g)", what, i, got[i], want[i], scale)
		}
	}
}

// program runs a model, after it was written and read.
func program(t interface{ Fatal(...any) }, m *onnx.Model, rows int, obs []float32, mask []bool) *run.Instance {
	read, err := onnx.Decode(m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	p, err := run.NewContext(context.Background(), read)
	if err != nil {
		t.Fatal(err)
	}
	i, err := p.For(rows)
	if err != nil {
		t.Fatal(err)
	}
	in, _ := i.Input(export.Observation)
	copy(in.Floats, obs)
	if in, ok := i.Input(export.Mask); ok {
		for k, legal := range mask {
			in.Ints[k] = 0
			if legal {
				in.Ints[k] = 1
			}
		}
	}
	if err := i.Run(); err != nil {
		t.Fatal(err)
	}
	return i
}

func floats(i *run.Instance, name string) []float32 {
	t, _ := i.Output(name)
	return t.Floats
}

// cases is where TestNetworksOfEveryKind leaves models, observations and results for others to compute.
var cases = os.Getenv("CLUSTERGYM_ONNX_CASES")

// keep writes a case: the model, and obs, mask and the named outputs as raw little-endian numbers.
func keep(name string, m *onnx.Model, n int, obs []float32, mask []bool, out map[string][]float32,
	action []int64) error {
	dir := filepath.Join(cases, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	bits := make([]byte, len(mask))
	for i, legal := range mask {
		if legal {
			bits[i] = 1
		}
	}
	files := map[string][]byte{"model.onnx": m.Encode(), "obs": raw(obs), "mask": bits, "rows": fmt.Append(nil, n)}
	for k, x := range out {
		files["out."+k] = raw(x)
	}
	acts := []byte{}
	for _, a := range action {
		acts = binary.LittleEndian.AppendUint64(acts, uint64(a))
	}
	files["action"] = acts
	for k, b := range files {
		if err := os.WriteFile(filepath.Join(dir, k), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func raw(x []float32) []byte {
	b := []byte{}
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func TestRunDoesNotAllocate(t *testing.T) {
	for name, p := range networks() {
		r := rand.New(rand.NewPCG(1, 1))
		net, err := model.NewActorCritic(p.cfg, p.in, p.actions, r)
		if err != nil {
			t.Fatal(err)
		}
		m, err := (&export.Policy{Net: net.Describe(), Sizes: []int{p.actions}, NoOp: p.actions - 1}).Model()
		if err != nil {
			t.Fatal(err)
		}
		obs, mask := observations(&p, 3, r)
		i := program(t, m, 3, obs, mask)
		if n := testing.AllocsPerRun(10, func() {
			if err := i.Run(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: Run allocates %v times", name, n)
		}
	}
}

// TestNetworksOfEveryKind computes networks as nets/model does and as their exports do.
func TestNetworksOfEveryKind(t *testing.T) {
	number := 0
	rapid.Check(t, func(t *rapid.T) {
		p := planOf(t)
		n := rapid.IntRange(1, 5).Draw(t, "rows")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		obs, mask := observations(&p, n, r)
		pol := export.Policy{Name: "drawn", Sizes: []int{p.actions}, NoOp: -1, QValues: rapid.Bool().Draw(t, "q"),
			Batch: rapid.SampledFrom([]int{0, n}).Draw(t, "batch")}
		want, name := map[string][]float32{}, export.Logits
		seen := obs
		if !pol.QValues && rapid.Bool().Draw(t, "scale") {
			width := p.in.Size()
			s := &export.Scale{Mean: make([]float32, width), Factor: make([]float32, width), Clip: 2}
			for k := range s.Mean {
				s.Factor[k] = 1 + r.Float32() // rows of zeros stay rows of zeros
			}
			seen = make([]float32, len(obs))
			for k, x := range obs {
				seen[k] = min(max((x-s.Mean[k%width])*s.Factor[k%width], -s.Clip), s.Clip)
			}
			pol.Scale = s
		}
		if pol.QValues {
			q, err := model.NewQNet(p.cfg, p.in, p.actions, rapid.Bool().Draw(t, "duelling"), r)
			if err != nil {
				t.Skip(err) // a critic's field and the like
			}
			scatter(q.Params().Data, r)
			pol.Net, name = q.Describe(), export.Values
			want[name] = append([]float32{}, q.Forward(n).Run(obs, mask, n)...)
		} else {
			net, err := model.NewActorCritic(p.cfg, p.in, p.actions, r)
			if err != nil {
				t.Skip(err)
			}
			scatter(net.Params().Data, r)
			pol.Net, pol.NoOp = net.Describe(), rapid.IntRange(-1, p.actions-1).Draw(t, "noop")
			logits, value := net.Forward(n).Run(seen, n)
			want[name], want[export.Value] = append([]float32{}, logits...), append([]float32{}, value...)
		}
		m, err := pol.Model()
		if err != nil {
			t.Fatal(err)
		}
		inst := program(t, m, n, obs, mask)
		tolerance := 1e-6
		if p.cfg.LayerNorm || p.cfg.Kind == model.KindAttention {
			tolerance = 1e-5
		}
		for k, x := range want {
			near(t, k, floats(inst, k), x, tolerance)
		}
		action, _ := inst.Output(export.Action)
		for i := range n {
			x, legal := floats(inst, name)[i*p.actions:(i+1)*p.actions], mask[i*p.actions:(i+1)*p.actions]
			if got, want := action.Ints[i], greedy(x, legal, pol.NoOp); got != int64(want) {
				t.Fatalf("row %d: action %d, want %d of %v, legal %v, doing nothing is %d", i, got, want, x, legal, pol.NoOp)
			}
		}
		if cases != "" {
			number++
			if err := keep(fmt.Sprintf("drawn-%03d", number), m, n, obs, mask, want, action.Ints); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Several factors are chosen each for itself, and numbers beside them are scaled and cut. No preset has such actions.
func TestFactorsBesideNumbers(t *testing.T) {
	const n = 6
	p := plan{cfg: model.Config{Kind: "mlp", Hidden: []int{8}, Activation: "tanh", Head: "dense"},
		in: model.Input{{Name: "x", Shape: []int{4}}}, actions: 7}
	r := rand.New(rand.NewPCG(1, 1))
	net, err := model.NewActorCritic(p.cfg, p.in, p.actions, r)
	if err != nil {
		t.Fatal(err)
	}
	scatter(net.Params().Data, r)
	obs, _ := observations(&p, n, r)
	head, value := net.Forward(n).Run(obs, n)
	box := &export.Box{Mid: []float32{1, 0}, Half: []float32{0.5, 2}, Low: []float32{0.5, -2}, High: []float32{1.5, 2}}
	m, err := (&export.Policy{Name: "drawn", Net: net.Describe(), Sizes: []int{2, 3}, Box: box, NoOp: 1}).Model()
	if err != nil {
		t.Fatal(err)
	}
	mask, want, actions, numbers := []bool{}, map[string][]float32{export.Value: value}, []int64{}, []float32{}
	for i := range n {
		legal := []bool{i%2 == 0, true, i%3 > 0, true, i%3 < 2}
		row := head[i*p.actions:][:p.actions]
		mask = append(mask, legal...)
		actions = append(actions, int64(greedy(row[:2], legal[:2], -1)), int64(greedy(row[2:5], legal[2:], -1)))
		want[export.Logits], want[export.Mean] = append(want[export.Logits],
			row[:5]...), append(want[export.Mean], row[5:]...)
		for k, x := range row[5:] {
			numbers = append(numbers, min(max(box.Mid[k]+box.Half[k]*x, box.Low[k]), box.High[k]))
		}
	}
	want[export.Numbers] = numbers
	inst := program(t, m, n, obs, mask)
	for k, x := range want {
		near(t, k, floats(inst, k), x, 1e-6)
	}
	if got, _ := inst.Output(export.Action); !slices.Equal(got.Shape, []int{n, 2}) || !slices.Equal(got.Ints, actions) {
		t.Errorf("actions %v %v, want %v", got.Shape, got.Ints, actions)
	}
	if cases != "" {
		if err := keep("factors", m, n, obs, mask, want, actions); err != nil {
			t.Fatal(err)
		}
	}
}

// greedy is the rule of agents/ppo and agents/ddqn.
func greedy(x []float32, legal []bool, noop int) int {
	best := -1
	others := 0.0
	for k, v := range x {
		if legal[k] && k != noop {
			if best < 0 || v > x[best] {
				best = k
			}
			if noop >= 0 {
				others += math.Exp(float64(v) - float64(x[noop]))
			}
		}
	}
	if noop >= 0 && legal[noop] && (best < 0 || others < 1) {
		return noop
	}
	return best
}
