package envs

import (
	"context"
	"image"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/internal/raced"
	"clustergym/internal/testseed"
)

// forecastKwargs are arguments of a small workload of the environment id.
func forecastKwargs(id, estimates, forecast string) wire.Map {
	m := wire.Map{
		{Key: "window", Value: int64(24)}, {Key: "estimates", Value: estimates}, {Key: "forecast", Value: forecast},
		{Key: "trace", Value: wire.Map{{Key: "synth", Value: wire.Map{{Key: "jobs", Value: int64(900)}}}}},
	}
	switch name, _, _ := strings.Cut(id, "-"); name {
	case "JobSelect":
		m = append(m, wire.Pair{Key: "visible", Value: int64(4)})
	case "QueueRank":
		m = append(m, wire.Pair{Key: "visible", Value: int64(6)})
	}
	if id == "JobSelect-v1" || id == "PolicyMix-v1" || strings.HasSuffix(id, "-v2") {
		m = append(m, wire.Pair{Key: "warm", Value: int64(16)})
	}
	return m
}

// blind reports whether the environment id can do without estimates.
func blind(id string) bool {
	return !strings.HasPrefix(id, "QueueRank-") && !strings.HasPrefix(id, "PolicyMix-")
}

// forecasting tells whether an environment has forecasts. Those that follow another program show what it shows.
func forecasting(id string) bool { return id != "RLScheduler-v1" && id != "RLTune-v1" }

// columns are the numbers of a field that forecasts add: so many at the end of each of its rows, all = the whole field.
type columns struct {
	field string
	last  int
	rows  int
	all   bool
}

// added returns what forecasts add to a specification.
func added(t *testing.T, off, on env.Spec) (cols []columns) {
	t.Helper()
	for _, f := range on.Obs {
		i := slices.IndexFunc(off.Obs, func(g env.Field) bool { return g.Name == f.Name })
		switch {
		case i < 0:
			cols = append(cols, columns{field: f.Name, last: f.Len(), rows: 1, all: true})
		case !slices.Equal(off.Obs[i].Shape, f.Shape):
			old, now := off.Obs[i].Shape, f.Shape
			rows := 1
			if len(now) == 2 {
				rows = now[0]
			}
			if k := len(now) - 1; now[k] != old[k]+encode.ForecastLen || !strings.HasPrefix(f.Doc, off.Obs[i].Doc) {
				t.Fatalf("%s: field %s has become %v of %v: %s", on.ID, f.Name, now, old, f.Doc)
			}
			cols = append(cols, columns{field: f.Name, last: encode.ForecastLen, rows: rows})
		case f.Doc != off.Obs[i].Doc || f.Group != off.Obs[i].Group || f.Unit != off.Obs[i].Unit:
			t.Errorf("%s: field %s has changed: %+v", on.ID, f.Name, f)
		}
	}
	return cols
}

// without returns the observation obs of spec without the numbers of cols, and these.
func without(spec env.Spec, obs []float32, cols []columns) (old, news []float32) {
	for _, f := range spec.Obs {
		x := obs[:f.Len()]
		obs = obs[f.Len():]
		i := slices.IndexFunc(cols, func(c columns) bool { return c.field == f.Name })
		switch {
		case i < 0:
			old = append(old, x...)
		case cols[i].all:
			news = append(news, x...)
		default:
			n := len(x) / cols[i].rows
			for r := range cols[i].rows {
				row := x[r*n : (r+1)*n]
				old = append(old, row[:n-cols[i].last]...)
				news = append(news, row[n-cols[i].last:]...)
			}
		}
	}
	return old, news
}

// Forecasts add numbers to observations and change nothing else: not the other numbers, rewards, masks, pictures or
// texts. The numbers are in bounds, say something where anything is known, and are restored by a snapshot.
func TestForecastsOnlyAddToObservations(t *testing.T) {
	if raced.On {
		t.Skip("one goroutine plays all of it; make unit runs this test")
	}
	seed := testseed.Or(41)
	r := registry(t, nil)
	for _, d := range scheduling {
		if !forecasting(d.ID) {
			continue
		}
		for _, estimates := range []string{"history", "gbdt", "exact", "noisy:1", "trace", "none"} {
			if estimates == "none" && !blind(d.ID) || estimates == "trace" && !strings.HasPrefix(d.ID, "QueueRank-") {
				continue // the other workloads have no requested times
			}
			causal := estimates == "history" || estimates == "gbdt"
			off := makeEnvs(t, r, d.ID, forecastKwargs(d.ID, estimates, "off"), 1).Envs[0]
			on := makeEnvs(t, r, d.ID, forecastKwargs(d.ID, estimates, "on"), 1).Envs[0]
			auto := makeEnvs(t, r, d.ID, forecastKwargs(d.ID, estimates, "auto"), 1).Envs[0]
			if (auto.Spec().ObsLen() == on.Spec().ObsLen()) != causal ||
				(auto.Spec().ObsLen() == off.Spec().ObsLen()) == causal {
				t.Errorf("%s, estimates %s: %d numbers, with forecasts %d, without %d", d.ID, estimates, auto.Spec().ObsLen(),
					on.Spec().ObsLen(), off.Spec().ObsLen())
			}
			cols := added(t, off.Spec(), on.Spec())
			if len(cols) == 0 {
				t.Fatalf("%s: forecasts add nothing", d.ID)
			}
			src := rand.New(rand.NewPCG(seed, 5))
			a, b := env.NewTimeStep(off.Spec()), env.NewTimeStep(on.Spec())
			back := env.NewTimeStep(on.Spec())
			some := false
			for ep := range 2 {
				at := env.Episode{Seed: seed + uint64(ep), Window: -1}
				if err := off.Reset(t.Context(), at, a); err != nil {
					t.Fatal(err)
				}
				if err := on.Reset(t.Context(), at, b); err != nil {
					t.Fatal(err)
				}
				for step := 0; ; step++ {
					if err := on.Spec().Check(b); err != nil {
						t.Fatalf("seed %d, estimates %s: %v", seed, estimates, err)
					}
					old, news := without(on.Spec(), b.Obs, cols)
					if !slices.Equal(old, a.Obs) || a.Kind != b.Kind || a.Reward != b.Reward || a.Elapsed != b.Elapsed ||
						!slices.Equal(a.Mask, b.Mask) {
						t.Fatalf("seed %d, %s, estimates %s: step %d differs with forecasts", seed, d.ID, estimates, step)
					}
					some = some || slices.ContainsFunc(news, func(x float32) bool { return x > 0 })
					if step%16 == 3 {
						same(t, off, on)
						snap, err := on.(env.Snapshotter).AppendSnapshot(nil)
						if err != nil {
							t.Fatal(err)
						}
						if err := auto.Reset(t.Context(), env.Episode{Seed: 99, Window: -1}, env.NewTimeStep(auto.Spec())); err != nil {
							t.Fatal(err)
						}
						into := on
						if causal {
							into = auto // another environment of the same workload
						}
						if err := into.(env.Snapshotter).RestoreSnapshot(snap, back); err != nil {
							t.Fatal(err)
						}
						if !slices.Equal(back.Obs, b.Obs) {
							t.Fatalf("seed %d, %s, estimates %s: step %d differs after a snapshot", seed, d.ID, estimates, step)
						}
					}
					if b.Kind.Last() || step == 120 {
						break
					}
					var legal []int32
					for k, ok := range b.Mask {
						if ok {
							legal = append(legal, int32(k))
						}
					}
					act := env.Action{Disc: []int32{legal[src.IntN(len(legal))]}}
					if err := off.Step(t.Context(), act, a); err != nil {
						t.Fatal(err)
					}
					if err := on.Step(t.Context(), act, b); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !some && estimates != "none" { // then only users and virtual clusters are known, and not every workload has any
				t.Errorf("%s, estimates %s: forecasts say nothing", d.ID, estimates)
			}
		}
	}
}

// same fails the test unless two environments render the same text and picture.
func same(t *testing.T, a, b env.Env) {
	t.Helper()
	var text [2]strings.Builder
	pix := [2]*image.RGBA{env.NewFrame(), env.NewFrame()}
	for i, e := range []env.Env{a, b} {
		if err := e.(env.Renderer).Render(&text[i], "ansi"); err != nil {
			t.Fatal(err)
		}
		if err := e.(env.Painter).Paint(pix[i]); err != nil {
			t.Fatal(err)
		}
	}
	if text[0].String() != text[1].String() {
		t.Errorf("%s is rendered differently with forecasts:\n%s\n%s", a.Spec().ID, text[0].String(), text[1].String())
	}
	if !slices.Equal(pix[0].Pix, pix[1].Pix) {
		t.Errorf("%s is painted differently with forecasts", a.Spec().ID)
	}
}

// Once an environment has played its episodes, playing them again with forecasts allocates nothing.
func TestForecastsAllocateNothing(t *testing.T) {
	if raced.On {
		t.Skip("the race detector allocates")
	}
	r := registry(t, nil)
	for _, d := range scheduling {
		if !forecasting(d.ID) {
			continue
		}
		made := makeEnvs(t, r, d.ID, forecastKwargs(d.ID, "history", "auto"), 1).Envs[0]
		e := made
		if s, ok := made.(*ServedEnv); ok {
			e = s.simulated // a served environment also keeps what remote players ask for
		}
		ts := env.NewTimeStep(e.Spec())
		disc := make([]int32, 1)
		play := func() {
			src := rand.New(rand.NewPCG(3, 3))
			for ep := range 3 {
				if err := e.Reset(context.Background(), env.Episode{Seed: uint64(ep), Window: -1}, ts); err != nil {
					t.Fatal(err)
				}
				for step := 0; step < 100 && !ts.Kind.Last(); step++ {
					k := src.IntN(len(ts.Mask))
					for !ts.Mask[k] {
						k = (k + 1) % len(ts.Mask)
					}
					disc[0] = int32(k)
					if err := e.Step(context.Background(), env.Action{Disc: disc}, ts); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for range 4 { // until every list has its full size: those of gangs change places
			play()
		}
		if n := testing.AllocsPerRun(3, play); n > 2 { // the random source
			t.Errorf("%s: %v allocations in three episodes", d.ID, n)
		}
	}
}
