package envs

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/env/delayoffer"
	"clustergym/env/gpupick"
	"clustergym/env/jobselect"
	"clustergym/env/policymix"
	"clustergym/env/queuerank"
	"clustergym/env/queuerank/rlscheduler"
	"clustergym/env/queuerank/rltune"
	"clustergym/env/workerplace"
	"clustergym/internal/raced"
)

// heapInUse returns the bytes of the heap that are reachable.
func heapInUse() float64 {
	var ms runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&ms)
	return float64(ms.HeapAlloc)
}

// measured returns the bytes that n environments of m hold on average after an episode each of random play, of at most
// so many steps.
func measured(t *testing.T, m *Made, steps int) float64 {
	t.Helper()
	spec := m.Envs[0].Spec()
	b, a := env.NewBatch(spec, 1), env.NewActions(spec, 1)
	ts := env.TimeStep{Obs: b.Obs, Mask: b.Mask, Info: b.Info}
	src := rand.New(rand.NewPCG(1, 2))
	legal := make([]int32, 0, spec.MaskLen())
	for k, e := range m.Envs {
		for ep := range 2 { // the second, which is short, meets what the first has left
			if err := e.Reset(t.Context(), env.Episode{Seed: uint64(2*k + ep), Window: -1}, &ts); err != nil {
				t.Fatal(err)
			}
			for range steps / (1 + 9*ep) {
				if ts.Kind.Last() {
					break
				}
				at := 0
				for f, s := range spec.Action.Sizes {
					legal = legal[:0]
					for i := range s {
						if ts.Mask[at+i] {
							legal = append(legal, int32(i))
						}
					}
					at += s
					a.Disc[f] = legal[src.IntN(len(legal))]
				}
				if err := e.Step(context.Background(), env.Action{Disc: a.Disc, Cont: a.Cont}, &ts); err != nil {
					t.Fatal(err)
				}
			}
		}
		if c, ok := e.(*ServedEnv); ok && !ts.Kind.Last() {
			for _, rule := range c.d.certainRules()[:1] {
				if _, err := c.Call("heuristic", wire.Map{{Key: "rule", Value: rule}}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	full := heapInUse()
	n := len(m.Envs)
	for _, e := range m.Envs {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	clear(m.Envs)
	empty := heapInUse()
	runtime.KeepAlive(b)
	runtime.KeepAlive(a)
	runtime.KeepAlive(legal)
	runtime.KeepAlive(src)
	return (full - empty) / float64(n)
}

// TestMemoryIsAnUpperBound opens and plays every environment over a grid of settings. What it takes must stay below the
// estimate that a server reserves for it, and large environments must not be estimated at a multiple.
func TestMemoryIsAnUpperBound(t *testing.T) {
	if raced.On || testing.Short() {
		t.Skip("the race detector changes what memory holds, and playing takes seconds")
	}
	kw := func(pairs ...any) wire.Map {
		var m wire.Map
		for i := 0; i < len(pairs); i += 2 {
			v := pairs[i+1]
			if n, ok := v.(int); ok {
				v = int64(n)
			}
			m = append(m, wire.Pair{Key: pairs[i].(string), Value: v})
		}
		return m
	}
	type setting struct {
		kwargs wire.Map
		n      int
	}
	const large = "300x8"
	grid := map[string][]setting{
		jobselect.V1: {
			{nil, 4}, {kw("window", 8, "warm", 0), 32}, {kw("window", 800), 1}, {kw("cluster", large), 1}, {kw("cluster",
				"1000x1"), 1}, {kw("cluster", "20x80"), 1},
			{kw("cluster", "pool:512"), 2}, {kw("relative", "sjf", "window", 800), 1},
			{kw("relative", "auto", "cluster", large), 1},
			{kw("contested", true), 2}, {kw("comm", "tree", "placement", "closest-c"), 2}, {kw("visible", 1024), 1},
			{kw("max_gpus", 1024, "visible", 256, "cluster", large), 1},
			{kw("estimates", "noisy:0.5"), 2},
			{kw("estimates", "history"), 2}, {kw("estimates", "history", "window", 800, "relative", "sjf"), 1}, {kw("forecast",
				"on", "window", 800), 1},
			{kw("running", 64), 4}, {kw("running", 1024, "window", 800), 1}, {kw("running", 16, "images", false, "cluster",
				large), 1},
		},
		jobselect.ID:  {{nil, 4}, {kw("window", 800), 1}, {kw("preset", "quickstart"), 2}, {kw("estimates", "exact"), 2}},
		policymix.ID:  {{nil, 4}, {kw("window", 800), 1}, {kw("estimates", "exact"), 2}},
		delayoffer.ID: {{nil, 4}, {kw("window", 1000, "estimates", "exact"), 1}, {kw("relative", true), 2}},
		gpupick.ID:    {{nil, 4}, {kw("window", 800, "estimates", "exact"), 1}, {kw("cluster", large), 2}},
		queuerank.ID: {{nil, 4}, {kw("window", 800), 1}, {kw("relative", "auto"), 2}, {kw("visible", 4096), 2},
			{kw("estimates", "history"), 2}},
		delayoffer.V1: {{nil, 4}, {kw("window", 8), 32}, {kw("window", 1000), 1}, {kw("cluster", "dally:10x40"), 1},
			{kw("relative", true), 2}, {kw("auto", true, "history", 50), 2}, {kw("forecast", "on"), 2},
			{kw("estimates", "history"), 2}},
		gpupick.V1: {
			{nil, 8}, {kw("window", 800), 1}, {kw("cluster", large), 2}, {kw("cluster", "2000x1"), 1},
			{kw("cluster", "20x80"), 2}, {kw("idle", true), 8},
			{kw("estimates", "history"), 8}, {kw("estimates", "history", "window", 800), 1}, {kw("forecast", "on", "window",
				800), 1},
		},
		policymix.V1: {
			{nil, 4}, {kw("window", 800), 1}, {kw("cluster", large), 1}, {kw("cluster", "1000x1"), 1},
			{kw("relative", "sjf"), 2}, {kw("contested", true), 2}, {kw("hold", "10m"), 2},
			{kw("estimates", "history"), 2}, {kw("estimates", "history", "window", 800), 1}, {kw("forecast", "on", "window",
				800), 1},
		},
		queuerank.V1: {
			{nil, 4}, {kw("window", 8), 32}, {kw("window", 800), 1}, {kw("cluster", "pool:100000"), 4},
			{kw("cluster", large), 1}, {kw("visible", 4096), 2}, {kw("filter", true), 2},
			{kw("reward", "dense"), 2}, {kw("estimates", "noisy:0.5"), 2},
			{kw("estimates", "history"), 2}, {kw("estimates", "history", "window", 800), 1}, {kw("forecast", "on", "window",
				800), 1},
		},
		rlscheduler.ID: {{nil, 4}, {kw("window", 8), 32}, {kw("window", 800), 1}, {kw("visible", 4096), 2},
			{kw("estimates", "history"), 2}, {kw("forecast", "on", "window", 800), 1}},
		rltune.ID: {{nil, 4}, {kw("window", 8), 32}, {kw("window", 800), 1}, {kw("cluster", large), 1},
			{kw("placement", "first", "backfill", "easy"), 2}, {kw("estimates", "history"), 2}},
		dagplace.ID: {
			{nil, 8}, {kw("gpus", 2), 32}, {kw("gpus", 2000), 1}, {kw("gpus", 1000, "links", "random"), 1}, {kw("gpus", 1000,
				"links", "equal"), 1}, {kw("gpus", 10000), 1},
			{kw("tasks", 1500), 1}, {kw("tasks", 1000, "degree", 50.0), 1}, {kw("tasks", 1000, "gpus", 1000), 1}, {kw("tasks",
				1000, "graph", "training"), 2},
			{kw("tasks", 1000, "graph", "layered", "insertion", true), 2}, {kw("tasks", 1500, "slots", 8), 1}, {kw("tasks", 400,
				"vary", true), 8}, {kw("tasks", 100, "gpus", 500, "vary", true, "slots", 8), 4},
		},
		workerplace.ID: {{nil, 16}, {kw("jobs", 1000), 4}, {kw("servers", 1000), 2}, {kw("servers", 1000, "jobs", 500), 1},
			{kw("gpus", 64, "slots", 100), 4}},
		workerplace.V2: {{nil, 16}, {kw("jobs", 1000), 4}, {kw("servers", 1000), 2}},
	}
	for _, id := range IDs() {
		r := registry(t, nil) // its workloads leave with it: each measurement collects the garbage of all that is still there
		d := Find(id)
		settings, ok := grid[id]
		if !ok {
			if d.HasSettings() {
				t.Errorf("%s has settings, and its memory is not measured: add it to the grid", id)
			}
			settings = []setting{{nil, 64}}
		}
		for _, s := range settings {
			made, err := r.Make(t.Context(), id, s.kwargs, s.n)
			if err != nil {
				t.Errorf("%s %v: %v", id, s.kwargs, err)
				continue
			}
			spec := made.Envs[0].Spec()
			args, err := decodeArgs(d, s.kwargs)
			if err != nil {
				t.Fatal(err)
			}
			w, err := r.workload(t.Context(), args)
			if err != nil {
				t.Fatal(err)
			}
			got := measured(t, made, 3000)
			bound := d.Memory(args.Settings, w.Extent()) + d.ownSteps(spec)
			t.Logf("%s %v: %.0f bytes, estimate %.0f, %.2f times", id, s.kwargs, got, bound, bound/got)
			if got > bound {
				t.Errorf("%s %v: an environment holds %.0f bytes, and %.0f are reserved for it", id, s.kwargs, got, bound)
			}
			if got > 256<<10 && bound > 3*got {
				t.Errorf("%s %v: an environment holds %.0f bytes, and %.0f are reserved for it, more than three times as many", id,
					s.kwargs, got, bound)
			}
		}
	}
}
