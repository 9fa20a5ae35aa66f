package gpupick_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/gpupick"
	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// row returns what field table says of GPU g: 13 numbers behind the two of field job.
func row(ts *env.TimeStep, g int) []float32 { return ts.Obs[2+13*g : 2+13*(g+1)] }

func near(a []float32, b ...float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-6 })
}

// On the empty tree of 2 racks of 4 machines of 4 GPUs a job of two GPUs gets GPU 0. Its neighbour then adds a
// fortieth, a GPU of the same rack a quarter more, and one of the other rack three quarters.
func TestATableByHand(t *testing.T) {
	cfg := plain()
	cfg.Table = true
	e, ts := open(t, cfg, job(0, time.Hour, 2), job(0, time.Hour, 3))
	if n := e.Spec().ObsLen(); n != 2+32*13 {
		t.Fatalf("%d numbers", n)
	}
	empty := []float32{1, 0, 0, 1, 0, 1, .5, 1, 0, 1, 14. / 16, 1, 0}
	for g := range 32 {
		if r := row(ts, g); !near(r, empty...) {
			t.Fatalf("GPU %d of the empty cluster: %v", g, r)
		}
	}
	pick(t, e, 0, ts)
	for _, c := range []struct {
		g    int
		want []float32
	}{
		{0, []float32{0, 1, 0, .75, .5, 1, .5, 15. / 16, .5, 1, 14. / 16, .025 / .775, 0}},
		{1, []float32{1, 0, 0, .75, .5, 1, .5, 15. / 16, .5, 1, 14. / 16, .025 / .775, 0}},
		{4, []float32{1, 0, 0, 1, 0, 1, .75, 15. / 16, .5, 1, 14. / 16, .275 / .775, 0}},
		{16, []float32{1, 0, 0, 1, 0, 1, .75, 1, 0, 1, 15. / 16, 1, 0}},
	} {
		if r := row(ts, c.g); !near(r, c.want...) {
			t.Errorf("GPU %d after the first pick: %v, want %v", c.g, r, c.want)
		}
	}
	pick(t, e, 1, ts)
	// It is the turn of the next job, of three GPUs, and the first holds two of machine 0.
	r := row(ts, 0)
	if r[0] != 0 || r[1] != 0 || !(r[2] > 0) || r[3] != .5 || r[5] != 2./3 || r[12] != r[2] {
		t.Errorf("GPU 0 for the next job: %v", r)
	}
}

// Masks, rewards and ends are the same with and without the table, and all numbers lie in [0, 1].
func TestATableChangesNothingElse(t *testing.T) {
	seed := testseed.Or(31)
	t.Logf("seed %d", seed)
	src := rand.New(rand.NewPCG(seed, 1))
	cfg := plain()
	var all [2]*gpupick.Env
	var ts [2]*env.TimeStep
	for i := range all {
		draw := rand.New(rand.NewPCG(seed, 2))
		cfg.Table = i == 1
		at := time.Duration(0)
		jobs := windows(nil)
		for range 40 {
			at += time.Duration(draw.IntN(600)) * time.Second
			jobs = append(jobs, job(at, time.Duration(1+draw.IntN(7200))*time.Second, 1+draw.IntN(8)))
		}
		all[i], ts[i] = open(t, cfg, jobs...)
	}
	for !ts[0].Kind.Last() {
		g := src.IntN(len(ts[0].Mask))
		for !ts[0].Mask[g] {
			g = (g + 1) % len(ts[0].Mask)
		}
		for i := range all {
			pick(t, all[i], g, ts[i])
		}
		if !slices.Equal(ts[0].Mask, ts[1].Mask) || ts[0].Reward != ts[1].Reward || ts[0].Kind != ts[1].Kind ||
			ts[0].Elapsed != ts[1].Elapsed {
			t.Fatalf("after GPU %d: reward %v and %v, kinds %v and %v", g, ts[0].Reward, ts[1].Reward, ts[0].Kind, ts[1].Kind)
		}
	}
}

// Picks beside an environment see what the environment shows.
func TestPicksSeeWhatTheEnvironmentShows(t *testing.T) {
	for _, table := range []bool{false, true} {
		cfg := plain()
		cfg.Table = table
		e, ts := open(t, cfg, job(0, time.Hour, 4), job(time.Minute, time.Hour, 8), job(2*time.Minute, 2*time.Hour, 3))
		p, err := gpupick.NewPicks(&cfg, e.View().Cluster(), 1)
		if err != nil {
			t.Fatal(err)
		}
		obs, mask := make([]float32, e.Spec().ObsLen()), make([]bool, 33)
		g := 0
		for !ts.Kind.Last() {
			p.Begin(e.View(), e.View().Waiting()[0])
			for done := false; !done; {
				p.Encode(obs)
				p.Mask(mask)
				for g, ok := range mask[:len(mask)-1] {
					if ok != p.Legal(cluster.GPU(g)) {
						t.Fatalf("GPU %d: masked %v, legal %v", g, !ok, !ok)
					}
				}
				if !slices.Equal(obs, ts.Obs) || !slices.Equal(mask, ts.Mask) {
					t.Fatalf("table %v, %d picked: the picks see %v, the environment %v", table, len(p.GPUs()), obs, ts.Obs)
				}
				for g = (g + 5) % 32; !mask[g]; g = (g + 1) % 32 {
				}
				done = p.Pick(cluster.GPU(g)) // before the environment's last pick starts the job
				pick(t, e, g, ts)
			}
		}
	}
}

// What picks could not show as the environment does is refused.
func TestPicksAreRefused(t *testing.T) {
	tree, err := cluster.New(tree())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := cluster.New(cluster.Spec{Pool: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in        *cluster.Cluster
		estimates sim.Estimates
		want      string
	}{
		{tree, sim.Estimates{}, `estimates: got ""`},
		{tree, sim.MustEstimates("history"), "got forecast auto with estimates history, want off"},
		{pool, sim.MustEstimates("exact"), "a counter of 8 GPUs has no machines"},
	} {
		cfg := plain()
		cfg.Estimates = c.estimates
		if _, err := gpupick.NewPicks(&cfg, c.in, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
