package synth

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/dagjson"
)

func draw(t *testing.T, c Config, pc PlatformConfig, seed uint64) *dag.Problem {
	t.Helper()
	src := rng.Stream(seed, "synth/test")
	p, err := Platform(pc, src)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Problem(c, p, "g", src)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestEveryKindGivesItsGraph(t *testing.T) {
	for _, kind := range Kinds() {
		for _, n := range []int{1, 2, 7, 100, 1000} {
			c := DefaultConfig()
			c.Kind, c.Tasks = kind, n
			q := draw(t, c, DefaultPlatformConfig(), 1)
			if kind != "training" && q.Tasks() != n {
				t.Errorf("%s: %d tasks, want %d", kind, q.Tasks(), n)
			}
			g := q.Graph
			if n < 100 {
				continue
			}
			degree := float64(g.Edges()) / float64(g.Len())
			if kind == "erdos" || kind == "layered" || kind == "instances" {
				if degree < 2.5 || degree > 3.5 {
					t.Errorf("%s of %d: %v parents each, want about 3", kind, n, degree)
				}
			}
			// The mean transfer over the mean run time is what was asked for.
			run := 0.0
			for i := range int32(n) {
				if int(i) < q.Tasks() {
					run += q.MeanExec(i) / float64(q.Tasks())
				}
			}
			cost := q.Platform.MeanCost(dag.Pairs).Of(g.Bytes() / float64(g.Edges()))
			if q.Tasks() == n && math.Abs(cost/run-c.CCR) > 1e-9 {
				t.Errorf("%s of %d: transfers of %v of a run, want %v", kind, n, cost/run, c.CCR)
			}
		}
	}
}

func TestEqualSeedsGiveEqualBytes(t *testing.T) {
	for _, kind := range Kinds() {
		c := DefaultConfig()
		c.Kind = kind
		var texts [3]string
		for k, seed := range []uint64{1, 1, 2} {
			q := draw(t, c, DefaultPlatformConfig(), seed)
			var b bytes.Buffer
			if err := dagjson.Write(&b, q.Graph, q.Platform); err != nil {
				t.Fatal(err)
			}
			texts[k] = b.String()
		}
		if texts[0] != texts[1] || texts[0] == texts[2] {
			t.Errorf("%s: equal %v, other %v", kind, texts[0] == texts[1], texts[0] != texts[2])
		}
	}
}

func TestManyParentsAreAllThereAre(t *testing.T) {
	c := DefaultConfig()
	c.Degree = 100
	if q := draw(t, c, DefaultPlatformConfig(), 1); q.Graph.Edges() != 100*99/2 {
		t.Errorf("%d edges", q.Graph.Edges())
	}
	c.Tasks = 1000
	if q := draw(t, c, DefaultPlatformConfig(), 1); q.Graph.Edges() < 95_000 || q.Graph.Edges() > 105_000 {
		t.Errorf("%d edges, want about 100000", q.Graph.Edges())
	}
}

// A step of training with one replica, two stages and eight micro-batches: 2·(16 + 1) tasks; a second step waits for
// the reductions of the first.
func TestAStepOfTraining(t *testing.T) {
	c := DefaultConfig()
	c.Kind, c.Stages, c.Replicas, c.Tasks = "training", 2, 1, 68
	q := draw(t, c, DefaultPlatformConfig(), 3)
	if q.Tasks() != 68 {
		t.Fatalf("%d tasks", q.Tasks())
	}
	// Forward of stage 0 and 1, backward of 1 and 0, eight times; then two reductions.
	if p := q.Graph.Preds(32); len(p) != 8 {
		t.Errorf("the reduction of stage 0 waits for %d tasks, want 8", len(p))
	}
	if p := q.Graph.Preds(34); len(p) != 1 || p[0].Task != 32 {
		t.Errorf("the second step begins behind %v", p)
	}
	if p := q.Graph.Preds(3); len(p) != 2 {
		t.Errorf("backward of stage 0 waits for %v", p)
	}
}

func TestInstancesKeepToTheTable(t *testing.T) {
	if len(table) != 19 {
		t.Fatalf("%d sizes", len(table))
	}
	for _, r := range table {
		c := DefaultConfig()
		c.Kind, c.Tasks, c.Degree = "instances", r.Nominal, 1
		q := draw(t, c, PlatformConfig{GPUs: 2, Speeds: "equal", Links: "equal", Bandwidth: 1}, 1)
		sum, most := 0.0, 0.0
		for i := range int32(q.Tasks()) {
			sum += q.Exec(i, 0)
			most = max(most, q.Exec(i, 0))
		}
		mean := sum / float64(q.Tasks())
		if most > r.Max || math.Abs(mean/r.Mean-1) > 6*math.Sqrt(r.Max/r.Mean/float64(q.Tasks())) {
			t.Errorf("%d: mean %v, most %v; want %v and %v", r.Nominal, mean, most, r.Mean, r.Max)
		}
	}
}

func TestPlatformsKeepToTheirBounds(t *testing.T) {
	for _, s := range speeds {
		for _, l := range nets {
			p, err := Platform(PlatformConfig{GPUs: 70, Speeds: s, Links: l, Bandwidth: 100}, rng.Stream(1, "synth/test"))
			if err != nil {
				t.Fatal(err)
			}
			low, high := map[string]float64{"equal": 1, "spread": 0.5, "busy": 0.15, "idle": 0.42}[s],
				map[string]float64{"equal": 1, "spread": 4, "busy": 0.42, "idle": 0.95}[s]
			for g := range 70 {
				if v := p.Processor(g).Speed; v < low-1e-12 || v > high+1e-12 {
					t.Errorf("%s: speed %v", s, v)
				}
			}
			if b := p.Bandwidth(0, 1); l != "random" && b != 100 ||
				l == "racks" && (p.Bandwidth(0, 8) != 50 || p.Bandwidth(0, 32) != 25 || p.Bandwidth(31, 24) != 100) {
				t.Errorf("%s: bandwidths %v, %v, %v", l, b, p.Bandwidth(0, 8), p.Bandwidth(0, 32))
			}
		}
	}
}

func TestFaultsNameTheirKeys(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	bad := Config{Kind: "x", Tasks: -1, Degree: -1, Sigma: 9, CCR: math.NaN()}
	if err := bad.Validate(); err == nil || len(strings.Split(err.Error(), "\n")) != 8 {
		t.Errorf("%v", err)
	}
	if err := (PlatformConfig{}).Validate(); err == nil || len(strings.Split(err.Error(), "\n")) != 4 {
		t.Errorf("%v", err)
	}
	if _, err := Problem(bad, nil, "", nil); err == nil {
		t.Error("a bad configuration is taken")
	}
	if _, err := Platform(PlatformConfig{}, nil); err == nil {
		t.Error("a bad platform is taken")
	}
}
