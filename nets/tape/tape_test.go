package tape_test

import (
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// regression is a network of two layers and a squared loss; w of the first layer is used twice.
func regression() *nets.Params {
	p := nets.NewParams([]nets.View{{Name: "w", Shape: []int{4, 4}}, {Name: "b", Shape: []int{4}},
		{Name: "head", Shape: []int{4, 2}}, {Name: "unused", Shape: []int{3}}})
	r := rng.Stream(1, "regression")
	for i := range p.Data {
		p.Data[i] = float32(r.NormFloat64() / 2)
	}
	return p
}

func regressionGraph(p *nets.Params, n int) func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
	return func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		var ns []*gorgonia.Node
		for i := range p.Views {
			ns = append(ns, b.Param(&p.Views[i]))
		}
		x := b.Input("x", n, 4)
		h := op.Dense(op.Dense(x, ns[0], ns[1], op.Tanh), b.Param(&p.Views[0]), ns[1], op.Tanh)
		q := op.Dense(h, ns[2], nil, op.Identity)
		loss, errs := op.TDLoss(q, b.Input("action", n), b.Input("target", n), b.Input("weight", n),
			b.Input("coef", op.TDCoefs))
		return loss, []*gorgonia.Node{q, errs}
	}
}

func fill(p *tape.Program, n int) {
	r := rng.Stream(2, "data")
	for i := 0; i < n; i++ {
		for j := 0; j < 4; j++ {
			p.Input("x")[4*i+j] = float32(r.NormFloat64())
		}
		p.Input("action")[i] = float32(i % 2)
		p.Input("target")[i] = float32(r.NormFloat64())
		p.Input("weight")[i] = 1
	}
	copy(p.Input("coef"), []float32{0, float32(n)})
}

func build(t testing.TB, dt tensor.Dtype, fn func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node)) *tape.Program {
	t.Helper()
	p, err := tape.Build(dt, fn)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t testing.TB, p *tape.Program) {
	t.Helper()
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
}

func TestGradHasTheLayoutOfTheParameters(t *testing.T) {
	params := regression()
	p := build(t, tensor.Float32, regressionGraph(params, 6))
	fill(p, 6)
	run(t, p)
	g := p.Grad()
	if err := params.Match(g); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"w", "b", "head"} {
		if !slices.ContainsFunc(g.View(name).Data, func(x float32) bool { return x != 0 }) {
			t.Errorf("gradient of %s is 0", name)
		}
	}
	for _, x := range g.View("unused").Data {
		if x != 0 {
			t.Errorf("gradient of a parameter that the loss does not see is %v", x)
		}
	}
}

func TestGradientIsOverwrittenNotAdded(t *testing.T) {
	params := regression()
	p := build(t, tensor.Float32, regressionGraph(params, 6))
	fill(p, 6)
	run(t, p)
	want := p.Grad().Clone()
	for i := range p.Grad().Data { // as clipping might
		p.Grad().Data[i] = 1e9
	}
	for i := range p.Grad().View("unused").Data {
		p.Grad().View("unused").Data[i] = 0
	}
	run(t, p)
	if !slices.Equal(want.Data, p.Grad().Data) {
		t.Error("two runs gave two gradients")
	}
}

func TestProgramsSeeNewWeightsAtOnceAndShareThem(t *testing.T) {
	params := regression()
	p, q := build(t, tensor.Float32, regressionGraph(params, 6)), build(t, tensor.Float32, regressionGraph(params, 6))
	fill(p, 6)
	fill(q, 6)
	run(t, p)
	before := p.Loss()
	for i, g := range p.Grad().Data {
		params.Data[i] -= 0.01 * g
	}
	run(t, q)
	if !(q.Loss() < before) {
		t.Errorf("a step down the gradient led from %v to %v", before, q.Loss())
	}
}

func TestEqualRunsHaveEqualBits(t *testing.T) {
	train := func() []float32 {
		params := regression()
		p := build(t, tensor.Float32, regressionGraph(params, 6)) // a new graph each time
		fill(p, 6)
		for step := 0; step < 50; step++ {
			run(t, p)
			for i, g := range p.Grad().Data {
				params.Data[i] -= 0.1 * g
			}
		}
		return params.Data
	}
	first := train()
	for i := 0; i < 5; i++ {
		if !slices.Equal(first, train()) {
			t.Fatal("50 steps gave other weights the second time")
		}
	}
}

func TestRunDoesNotAllocate(t *testing.T) {
	p := build(t, tensor.Float32, regressionGraph(regression(), 6))
	fill(p, 6)
	if n := testing.AllocsPerRun(50, func() { run(t, p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Gradients must equal those of Gorgonia's own machine over its own operations: the same network written twice.
func TestGradientsEqualThoseOfGorgoniasOwnOperations(t *testing.T) {
	const n = 6
	params := regression()
	p := build(t, tensor.Float32, regressionGraph(params, n))
	fill(p, n)
	run(t, p)

	g := gorgonia.NewGraph()
	toF64 := func(x []float32) []float64 {
		y := make([]float64, len(x))
		for i := range x {
			y[i] = float64(x[i])
		}
		return y
	}
	leaf := func(name string, x []float32, shape ...int) *gorgonia.Node {
		return gorgonia.NewTensor(g, tensor.Float64, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name),
			gorgonia.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(toF64(x)))))
	}
	w := leaf("w", params.View("w").Data, 4, 4)
	b := leaf("b", params.View("b").Data, 1, 4)
	head := leaf("head", params.View("head").Data, 4, 2)
	x := leaf("x", p.Input("x"), n, 4)
	must := gorgonia.Must
	layer := func(x *gorgonia.Node) *gorgonia.Node {
		return must(gorgonia.Tanh(must(gorgonia.BroadcastAdd(must(gorgonia.Mul(x, w)), b, nil, []byte{0}))))
	}
	q := must(gorgonia.Mul(layer(layer(x)), head))
	taken, target := make([]float32, 2*n), make([]float32, 2*n)
	for i := 0; i < n; i++ {
		taken[2*i+i%2] = 1
		target[2*i+i%2] = p.Input("target")[i]
	}
	d := must(gorgonia.Sub(must(gorgonia.HadamardProd(q, leaf("taken", taken, n, 2))), leaf("target", target, n, 2)))
	loss := must(gorgonia.Div(must(gorgonia.Sum(must(gorgonia.Square(d)))), gorgonia.NewConstant(float64(n))))
	if _, err := gorgonia.Grad(loss, w, b, head); err != nil {
		t.Fatal(err)
	}
	vm := gorgonia.NewTapeMachine(g, gorgonia.BindDualValues(w, b, head))
	defer func() { _ = vm.Close() }()
	if err := vm.RunAll(); err != nil {
		t.Fatal(err)
	}
	for name, node := range map[string]*gorgonia.Node{"w": w, "b": b, "head": head} {
		v, err := node.Grad()
		if err != nil {
			t.Fatal(err)
		}
		want := v.Data().([]float64)
		for i, got := range p.Grad().View(name).Data {
			if math.Abs(float64(got)-want[i]) > 1e-6 {
				t.Errorf("d/d%s[%d] = %v, Gorgonia %v", name, i, got, want[i])
			}
		}
	}
}

func TestGorgoniasOwnOperationsRunToo(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		params := nets.NewParams([]nets.View{{Name: "a", Shape: []int{2, 3}}, {Name: "s"}})
		copy(params.Data, []float32{1, 2, 3, 4, 5, 6, 2})
		p := build(t, dt, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			a, s := b.Param(&params.Views[0]), b.Param(&params.Views[1])
			at := gorgonia.Must(gorgonia.Transpose(a))
			y := gorgonia.Must(gorgonia.Mul(a, at))                        // [2 2]: 14 32 32 77
			z := gorgonia.Must(gorgonia.Mul(y, s))                         // scalar times matrix
			return gorgonia.Must(gorgonia.Sum(z)), []*gorgonia.Node{at, z} // 310
		})
		run(t, p)
		if p.Loss() != 310 {
			t.Errorf("%v: loss %v, want 310", dt, p.Loss())
		}
		want := map[string][]float32{"a": {20, 28, 36, 20, 28, 36}, "s": {155}} // dL/da = 2s·(column sums)
		for name, w := range want {
			if !slices.Equal(p.Grad().View(name).Data, w) {
				t.Errorf("%v: gradient of %s = %v, want %v", dt, name, p.Grad().View(name).Data, w)
			}
		}
		if dt == tensor.Float32 && !slices.Equal(p.Output(0), []float32{1, 4, 2, 5, 3, 6}) {
			t.Errorf("transposed output %v", p.Output(0))
		}
	}
}

func TestScalarInput(t *testing.T) {
	p := build(t, tensor.Float32, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		return nil, []*gorgonia.Node{gorgonia.Must(gorgonia.Square(b.Input("x")))}
	})
	p.Input("x")[0] = 3
	run(t, p)
	if p.Output(0)[0] != 9 || p.Loss() != 0 {
		t.Errorf("output %v, loss %v", p.Output(0), p.Loss())
	}
}

func TestMistakesAreErrors(t *testing.T) {
	v := &nets.View{Name: "w", Shape: []int{2, 2}, Data: make([]float32, 4)}
	for _, c := range []struct {
		name, want string
		build      func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node)
	}{
		{"nothing", "neither", func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) { return nil, nil }},
		{"loss that is no scalar", "want a scalar", func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			return op.Activate(b.Param(v), op.Tanh), nil
		}},
		{"name twice", `"w"`, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			b.Param(v)
			return nil, []*gorgonia.Node{b.Input("w", 2)}
		}},
		{"other view of one name", `"w"`, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			b.Param(v)
			return nil, []*gorgonia.Node{b.Param(&nets.View{Name: "w", Shape: []int{1}, Data: make([]float32, 1)})}
		}},
		{"view of the wrong size", "elements", func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			return nil, []*gorgonia.Node{b.Param(&nets.View{Name: "u", Shape: []int{3}, Data: make([]float32, 2)})}
		}},
		{"shape with 0", "shape", func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			return nil, []*gorgonia.Node{b.Input("x", 0, 2)}
		}},
		{"node of another graph", "not of this graph", func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			return nil, []*gorgonia.Node{tape.New(tensor.Float32).Input("x", 2)}
		}},
		{"variable from elsewhere", "not made by this builder", func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			x := gorgonia.NewMatrix(b.Graph(), b.Dtype(), gorgonia.WithShape(2, 2), gorgonia.WithName("x"))
			return nil, []*gorgonia.Node{op.Activate(x, op.Tanh)}
		}},
		{"Gorgonia's own panic", "tape: build", func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			return gorgonia.Must(gorgonia.Mul(b.Input("x", 2, 3), b.Input("y", 2, 3))), nil
		}},
		{"operation without a gradient", "Compile", func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			s := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.Gt(b.Param(v), b.Input("y", 2, 2), true))))
			return s, nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := tape.Build(tensor.Float32, c.build)
			if c.want == "Compile" { // a comparison has gradient 0: either is right, a panic is not
				if err == nil {
					run(t, p)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	if _,
		err := tape.Build(tensor.Int, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) { return nil, nil }); err ==
		nil {
		t.Error("a graph of integers was accepted")
	}
	if p := build(t, tensor.Float32, regressionGraph(regression(), 2)); p.Input("nothing") != nil ||
		p.InputF64("x") != nil {
		t.Error("an input that does not exist is not nil")
	}
}

// A program bound to other memory for an input computes the same as with a copy, and reads that memory at every run.
func TestInputsMayLieElsewhere(t *testing.T) {
	params := regression()
	copied, bound := build(t, tensor.Float32,
		regressionGraph(params, 6)), build(t, tensor.Float32, regressionGraph(params, 6))
	fill(copied, 6)
	fill(bound, 6)
	x := make([]float32, 6*4+3)
	clear(bound.Input("x"))
	if !bound.Bind("x", x) {
		t.Fatal("x cannot be bound")
	}
	for round := range 2 {
		for i := range copied.Input("x") {
			x[i] = float32(i*(round+1)) / 10
		}
		copy(copied.Input("x"), x)
		run(t, copied)
		run(t, bound)
		if !slices.Equal(copied.Grad().Data, bound.Grad().Data) || copied.Loss() != bound.Loss() {
			t.Errorf("round %d: another gradient", round)
		}
	}
	if bound.Bind("x", x[:23]) {
		t.Error("bound to fewer elements than the input has")
	}
	if bound.Bind("y", x) {
		t.Error("bound an input that does not exist")
	}
	given := build(t, tensor.Float32, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		x := b.Input("x", 6, 4)
		return nil, []*gorgonia.Node{x, op.Activate(x, op.ReLU)}
	})
	if given.Bind("x", x) {
		t.Error("bound an input that is given out as well")
	}
}

// Memory that steps no longer need is reused, but what the caller reads stays: outputs of every layer are right after
// the run.
func TestMemoryIsUsedAgain(t *testing.T) {
	const n, layers = 16, 12
	deep := func(all bool) func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		return func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			x := b.Input("x", n, 4)
			var each []*gorgonia.Node
			for range layers {
				x = op.Activate(op.Concat(op.Columns(x, 2, 4), op.Columns(x, 0, 2)), op.Tanh)
				each = append(each, x)
			}
			if !all {
				each = each[layers-1:]
			}
			return nil, each
		}
	}
	all, last := build(t, tensor.Float32, deep(true)), build(t, tensor.Float32, deep(false))
	for i := range all.Input("x") {
		all.Input("x")[i], last.Input("x")[i] = float32(i)/7, float32(i)/7
	}
	run(t, all)
	run(t, last)
	want := slices.Clone(all.Input("x"))
	for k := range layers {
		next := slices.Clone(want)
		for i := range want {
			next[i] = float32(math.Tanh(float64(want[i^2])))
		}
		want = next
		for i, y := range all.Output(k) {
			if math.Abs(float64(y-want[i])) > 1e-5 {
				t.Fatalf("layer %d: element %d is %v, want %v", k, i, y, want[i])
			}
		}
	}
	if !slices.Equal(last.Output(0), all.Output(layers-1)) {
		t.Error("a program that gives out the last layer alone computes another one")
	}
	if a, b := last.Memory(), all.Memory(); a > n*4*5 || b < n*4*(layers+1) {
		t.Errorf("%d elements with one layer given out and %d with all, of %d each", a, b, n*4)
	}
}

// firstUse tells this program, started by a test of its own, to be the first that uses Gorgonia in its process.
const firstUse = "CLUSTERGYM_TAPE_FIRST_USE"

// Goroutines that build programs at the same time get the same as one that builds alone. What Gorgonia keeps for all
// graphs it fills in when it is first used, so this runs in a process of its own; the race detector then sees it.
func TestProgramsAreBuiltSideBySide(t *testing.T) {
	if os.Getenv(firstUse) != "" {
		buildSideBySide(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 4 { // goroutines meet in different places
		c := exec.CommandContext(t.Context(), self, "-test.run=^TestProgramsAreBuiltSideBySide$", "-test.v")
		c.Env = append(os.Environ(), firstUse+"=1")
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

func buildSideBySide(t *testing.T) {
	params := regression()
	mine := regressionGraph(params, 6)
	// Gorgonia's own operations use its constants 0 and 2 as they are added to the graph or differentiated.
	theirs := func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		h := gorgonia.Must(gorgonia.Rectify(gorgonia.Must(gorgonia.Mul(b.Input("x", 6, 4), b.Param(&params.Views[0])))))
		return gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.Square(h)))), []*gorgonia.Node{h}
	}
	cases := []struct {
		name  string
		dt    tensor.Dtype
		graph func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node)
	}{
		{"float32", tensor.Float32, mine}, {"float64", tensor.Float64, mine},
		{"float32, Gorgonia's operations", tensor.Float32, theirs},
		{"float64, Gorgonia's operations", tensor.Float64, theirs},
	}
	var (
		programs [16]*tape.Program
		errs     [len(programs)]error
		start    = make(chan struct{})
		done     sync.WaitGroup
	)
	for i := range programs {
		done.Add(1)
		go func() {
			defer done.Done()
			<-start
			c := cases[i%len(cases)]
			programs[i], errs[i] = tape.Build(c.dt, c.graph)
		}()
	}
	close(start)
	done.Wait()
	result := func(p *tape.Program) []float64 {
		x, x64 := p.Input("x"), p.InputF64("x")
		for i := range 6 * 4 {
			v := math.Sin(float64(i))
			if x64 != nil {
				x64[i] = v
			} else {
				x[i] = float32(v)
			}
		}
		for _, name := range []string{"weight", "target"} {
			for i := range p.Input(name) {
				p.Input(name)[i] = 1
			}
			for i := range p.InputF64(name) {
				p.InputF64(name)[i] = 1
			}
		}
		copy(p.Input("coef"), []float32{0, 6})
		copy(p.InputF64("coef"), []float64{0, 6})
		run(t, p)
		all := []float64{p.Loss()}
		for _, v := range p.Grad().Views {
			if g := p.GradF64(v.Name); g != nil {
				all = append(all, g...)
				continue
			}
			for _, g := range v.Data {
				all = append(all, float64(g))
			}
		}
		return all
	}
	for i, p := range programs {
		c := cases[i%len(cases)]
		if errs[i] != nil {
			t.Fatalf("%s: %v", c.name, errs[i])
		}
		got, want := result(p), result(build(t, c.dt, c.graph))
		if !slices.Equal(got, want) {
			t.Errorf("%s: loss and gradients are %v, built alone %v", c.name, got, want)
		}
		if !slices.ContainsFunc(want[1:], func(x float64) bool { return x != 0 }) {
			t.Errorf("%s: the gradient is 0", c.name)
		}
	}
}

// A function that panics leaves the next Build free to go on.
func TestAPanicDoesNotHoldUpTheNextBuild(t *testing.T) {
	for range 2 {
		if _,
			err := tape.Build(tensor.Float32, func(*tape.Builder) (*gorgonia.Node, []*gorgonia.Node) { panic("no") }); err ==
			nil {
			t.Error("a panic is no error")
		}
	}
	build(t, tensor.Float32, regressionGraph(regression(), 2))
}
