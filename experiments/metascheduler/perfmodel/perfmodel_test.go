package perfmodel

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/workerplace"
)

var ctx = context.Background()

// measured returns the measurements of a rule's play, and the environment in which it played.
func measured(t testing.TB, rule string, episodes int) (*Data, *workerplace.Env) {
	t.Helper()
	e, err := workerplace.New(workerplace.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	r, err := workerplace.RuleOf(rule)
	if err != nil {
		t.Fatal(err)
	}
	d, ts, src := &Data{}, env.NewTimeStep(e.Spec()), rand.New(rand.NewPCG(1, 2))
	e.Record(func(p *workerplace.Placement, v []float64) error { d.Add(p, v); return nil })
	for k := range episodes {
		_, _, err := env.Play(ctx, e, env.Episode{Seed: uint64(k), Window: -1}, ts,
			func(_ *env.TimeStep, a env.Action) error {
				a.Disc[0] = r.Choose(e, src)
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	return d, e
}

func small() Config {
	c := DefaultConfig()
	c.Hidden, c.Epochs, c.Members = []int{32, 32}, 30, 3
	return c
}

func fitted(t testing.TB, d *Data, workers int) (*Ensemble, []Fit) {
	t.Helper()
	e, err := New(small(), 7)
	if err != nil {
		t.Fatal(err)
	}
	f, err := e.Fit(ctx, d, workers)
	if err != nil {
		t.Fatal(err)
	}
	return e, f
}

func bytesOf(t testing.TB, e *Ensemble) string {
	t.Helper()
	var b bytes.Buffer
	for _, p := range e.Parts() {
		if _, err := p.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestAnEnsembleLearnsSpeedsAndKnowsWhatItDoesNotKnow(t *testing.T) {
	d, _ := measured(t, "random", 4)
	mean, variance := 0.0, 0.0
	for _, y := range d.Y {
		mean += float64(y) / float64(d.Len())
	}
	for _, y := range d.Y {
		variance += (float64(y) - mean) * (float64(y) - mean) / float64(d.Len())
	}
	_, fits := fitted(t, d, 1)
	for k, f := range fits {
		if f.Validation > 0.5*math.Sqrt(variance) {
			t.Errorf("member %d: error %v, a constant's is %v", k, f.Validation, math.Sqrt(variance))
		}
	}
	// Where jobs are kept apart, six vgg-16 on one server are not seen; one job alone is.
	d, _ = measured(t, "least-interference", 4)
	e, _ := fitted(t, d, 1)
	crowd := &workerplace.Placement{Servers: 6}
	for range 6 {
		crowd.Jobs = append(crowd.Jobs, workerplace.Placed{Type: 1, Workers: 1, On: []int32{1, 0, 0, 0, 0, 0}})
	}
	alone := &workerplace.Placement{Servers: 6, Jobs: crowd.Jobs[:1]}
	v := e.View()
	var known, unknown [1]float64
	spread(v, known[:], alone)
	spread(v, unknown[:], crowd)
	if unknown[0] <= known[0] {
		t.Errorf("spread alone %v, in an unknown crowd %v", known, unknown)
	}
}

func TestWorkersChangeNothingAndWeightsAreKept(t *testing.T) {
	d, _ := measured(t, "load-balance", 2)
	one, _ := fitted(t, d, 1)
	three, _ := fitted(t, d, 3)
	if bytesOf(t, one) != bytesOf(t, three) {
		t.Error("three workers fit other networks than one")
	}
	other, err := New(small(), 99)
	if err != nil {
		t.Fatal(err)
	}
	parts := other.Parts()
	for i, p := range one.Parts() {
		var b bytes.Buffer
		if _, err := p.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := parts[i].ReadFrom(&b); err != nil {
			t.Fatal(err)
		}
	}
	if bytesOf(t, other) != bytesOf(t, one) {
		t.Error("what was read is not what was written")
	}
}

// A view of one member predicts what that member predicts, and a view of all the geometric mean.
func TestViewsAreOfTheirMembers(t *testing.T) {
	d, _ := measured(t, "load-balance", 1)
	e, _ := fitted(t, d, 1)
	p := &workerplace.Placement{Servers: 2,
		Jobs: []workerplace.Placed{{Type: 0, Workers: 2, On: []int32{1, 1}}, {Type: 3, Workers: 1, On: []int32{0, 1}}}}
	var all, sum [2]float64
	if err := e.View().Speeds(all[:], p); err != nil {
		t.Fatal(err)
	}
	for k := range e.Members() {
		var one [2]float64
		if err := e.View(k).Speeds(one[:], p); err != nil {
			t.Fatal(err)
		}
		for i, x := range one {
			sum[i] += math.Log(x) / float64(e.Members())
		}
	}
	for i := range all {
		if math.Abs(math.Log(all[i])-sum[i]) > 1e-6 {
			t.Errorf("job %d: %v of all, %v by hand", i, all[i], math.Exp(sum[i]))
		}
	}
}

func TestBadSettingsAndTooLittleDataAreNamed(t *testing.T) {
	c := small()
	c.Members, c.Validation = 0, 1
	if _, err := New(c, 1); err == nil || !strings.Contains(err.Error(), "members: got 0") ||
		!strings.Contains(err.Error(), "validation: got 1") {
		t.Errorf("got %v", err)
	}
	e, err := New(small(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Fit(ctx, &Data{}, 1); err == nil || !strings.Contains(err.Error(), "0 measurements") {
		t.Errorf("got %v", err)
	}
}

// spread fills dst with the members' deviation of each job's logarithm: how uncertain the prediction is.
func spread(v *View, dst []float64, p *workerplace.Placement) {
	v.predict(p)
	k := float64(len(v.nets))
	for i := range dst {
		sum, squares := 0.0, 0.0
		for m := range v.nets {
			y := v.all[m*v.rows+i]
			sum += y
			squares += y * y
		}
		dst[i] = math.Sqrt(max(squares/k-sum*sum/k/k, 0))
	}
}
