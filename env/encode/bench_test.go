package encode_test

import (
	"math/rand/v2"
	"testing"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/traces"
	"clustergym/traces/synth"
)

// busy is an environment in the middle of an episode, and an encoder over its cluster.
func busy(t testing.TB, axis *encode.Axis) (*encode.Image, *sched.Env) {
	t.Helper()
	gen := synth.DefaultConfig()
	gen.Jobs = 4000
	jobs, err := synth.Generate(gen, 1)
	if err != nil {
		t.Fatal(err)
	}
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4}}}}}
	cfg := jobselect.DefaultConfig()
	w, err := jobselect.NewWorkload(cfg, spec, jobs)
	if err != nil {
		t.Fatal(err)
	}
	e, err := jobselect.New(cfg, spec, w.Windows, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 3, Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(2, 2))
	for range 150 {
		a := r.IntN(11)
		for !ts.Mask[a] {
			a = r.IntN(11)
		}
		step(t, e, a, ts)
	}
	rule, err := cluster.NewPlacement("closest-b")
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	im, err := encode.NewImage(axis, c, 10, 8, encode.NewPlacements(rule), nil)
	if err != nil {
		t.Fatal(err)
	}
	return im, e
}

// A separate encoder over the same state writes what the environment showed, and does not allocate.
func TestEncodingAgainGivesTheSame(t *testing.T) {
	im, e := busy(t, encode.LogAxis())
	a, b := make([]float32, e.Spec().ObsLen()), make([]float32, e.Spec().ObsLen())
	for i := range b {
		b[i] = 99
	}
	im.Encode(a, e.State())
	im.Encode(b, e.State())
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("element %d is %v, then %v", i, a[i], b[i])
		}
	}
	if n := testing.AllocsPerRun(100, func() { im.Encode(a, e.State()) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEncode(b *testing.B) {
	im, e := busy(b, encode.LogAxis())
	dst := make([]float32, e.Spec().ObsLen())
	b.ReportAllocs()
	for b.Loop() {
		im.Encode(dst, e.State())
	}
}
