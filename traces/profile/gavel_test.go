package profile

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// smallGavel: A has two batch sizes, B needs no batch size, C fits on no k80.
const smallGavel = `{
  "v100": {
    "('A (batch size 16)', 1)": {"null": 10.0, "('B', 1)": [5.0, 1.5], "('A (batch size 16)', 1)": [4.0, 4.0]},
    "('A (batch size 32)', 1)": {"null": 8, "('B', 1)": [6, 2.5]},
    "('A (batch size 16)', 4)": {"null": 30.0, "('A (batch size 16)', 4)": [0.0, 0.0]},
    "('B', 1)": {"null": 2, "('A (batch size 16)', 1)": [1.5, 5.0], "('A (batch size 32)', 1)": [2.5, 6]},
    "('C', 1)": {"null": 3}
  },
  "k80": {
    "('A (batch size 16)', 1)": {"null": 2.5, "('B', 1)": [1.0, 0.25]},
    "('B', 1)": {"null": 0.5, "('A (batch size 16)', 1)": [0.25, 1.0]},
    "('C', 1)": {"null": 0.0, "('B', 1)": [0.0, 0.0]}
  },
  "v100_unconsolidated": {
    "('A (batch size 16)', 1)": {"null": 10.0},
    "('A (batch size 16)', 4)": {"null": 12.0}
  }
}
`

func gavelTable(t testing.TB) *Table {
	t.Helper()
	b := newBuilder()
	if err := b.gavel([]byte(smallGavel), "small.json"); err != nil {
		t.Fatal(err)
	}
	return b.table()
}

func TestGavelByHand(t *testing.T) {
	g := gavelTable(t)
	if got, want := strings.Join(g.Models(), "; "), "A (batch size 16); A (batch size 32); B; C"; got != want {
		t.Errorf("models %s, want %s", got, want)
	}
	if got := g.Types(); !slices.Equal(got, []string{"k80", "v100"}) {
		t.Errorf("types %v", got)
	}
	for _, c := range []struct {
		model, gpu string
		gpus       int
		want       float64 // 0 = not known
	}{
		{"A (batch size 16)", "v100", 1, 10}, {"A (batch size 16)", "V100", 1, 10},
		{"A (batch size 16)", "v100", 4, 30},
		{"A (batch size 16)", "v100", 2, 10 + 20./3}, // a third of the way from 1 to 4
		{"A (batch size 16)", "v100", 5, 0}, {"A (batch size 16)", "v100", 0, 0}, {"A (batch size 16)", "k80", 4, 0},
		{"A (batch size 32)", "v100", 1, 8}, {"A (batch size 32)", "k80", 1, 0},
		{"A", "v100", 1, 10}, // the smallest batch size
		{"B", "k80", 1, 0.5}, {"C", "v100", 1, 3}, {"C", "k80", 1, 0}, {"D", "v100", 1, 0}, {"A", "p100", 1, 0},
		{"A", "", 1, 0},
	} {
		if got, ok := g.Throughput(c.model, c.gpu, c.gpus); got != c.want || ok != (c.want > 0) {
			t.Errorf("%s on %d %s: %v, %v; want %v", c.model, c.gpus, c.gpu, got, ok, c.want)
		}
	}
	for _, c := range []struct {
		victim, other string
		want          float64 // 0 = not known
	}{
		{"A (batch size 16)", "B", (5./10 + 1/2.5) / 2}, // the mean of both types
		{"B", "A (batch size 16)", (1.5/2 + .25/.5) / 2},
		{"B", "A (batch size 32)", 1}, // 2.5/2 is noise
		{"A (batch size 32)", "B", 6. / 8},
		{"A", "B", (.45 + .75) / 2},    // of both batch sizes
		{"A (batch size 64)", "B", .6}, // not measured: as the base name
		{"A (batch size 16)", "A", .4}, // beside itself
		{"A (batch size 32)", "A", 0},  // not measured
		{"C", "B", 0}, {"D", "A", 0}, {"", "", 0},
	} {
		if got, ok := g.Kept(c.victim, c.other); !near(got, c.want) || ok != (c.want > 0) {
			t.Errorf("%s beside %s keeps %v, %v; want %v", c.victim, c.other, got, ok, c.want)
		}
	}
	for _, c := range []struct {
		gpus, nodes int
		want        float64
	}{{4, 2, .4}, {4, 4, .4}, {4, 1, 1}, {2, 2, 0}, {4, 5, 0}, {4, 0, 0}, {1, 1, 1}} {
		if got, ok := g.Spread("A (batch size 16)", "v100", c.gpus, c.nodes); got != c.want || ok != (c.want > 0) {
			t.Errorf("%d GPUs on %d nodes keep %v, %v; want %v", c.gpus, c.nodes, got, ok, c.want)
		}
	}
	if _, ok := g.Spread("A (batch size 16)", "p100", 4, 2); ok {
		t.Error("Spread knows a type that the table does not have")
	}
}

func TestGavelProfileByHand(t *testing.T) {
	g := gavelTable(t)
	p, ok := g.Profile("A (batch size 16)", "v100")
	if !ok || p.Name != "A (batch size 16)" || p.Compute != 100*time.Millisecond || len(p.Speeds) != 2 ||
		p.Speeds["v100"] != 1 || p.Speeds["k80"] != .25 {
		t.Fatalf("%+v", p)
	}
	if len(p.Scaling) != 2 || p.Throughput(1) != 10 || p.Throughput(4) != 30 {
		t.Errorf("scaling %v", p.Scaling)
	}
	if again, _ := g.Profile("A (batch size 16)", "V100"); again != p {
		t.Error("a second call makes another profile")
	}
	if p, _ := g.Profile("A (batch size 16)", "k80"); p.Speeds["v100"] != 4 || p.Compute != 400*time.Millisecond ||
		p.Scaling != nil {
		t.Errorf("on k80: %+v", p)
	}
	for _, c := range [][2]string{{"D", "v100"}, {"C", "k80"}, {"A", "p100"}} {
		if p, ok := g.Profile(c[0], c[1]); ok || p != nil {
			t.Errorf("%v has the profile %+v", c, p)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 }

func TestGavelFaultsNameLineAndKey(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`[]`, `f:1: got "[", want an object of GPU types`},
		{`{"v100": 3}`, `f:1: v100: got "3", want an object of jobs`},
		{"{\"v100\": {\n\n\"A, 1\": {}}}",
			`f:3: v100 / A, 1: got "A, 1", want a job and its GPUs, as in ('LM (batch size 5)', 1)`},
		{`{"v100": {"('A', 0)": {}}}`,
			`f:1: v100 / ('A', 0): got "('A', 0)", want a job and its GPUs, as in ('LM (batch size 5)', 1)`},
		{`{"v100": {"('A', 1)": {}}}`, `f:1: v100 / ('A', 1): got "no \"null\"", want the throughput alone under "null"`},
		{"{\"v100\": {\"('A', 1)\": {\n\"null\": \"x\"}}}",
			`f:2: v100 / ('A', 1) / null: got "x", want 0 or a number from 1e-15 to 1e15`},
		{`{"v100": {"('A', 1)": {"null": -1}}}`,
			`f:1: v100 / ('A', 1) / null: got "-1", want 0 or a number from 1e-15 to 1e15`},
		{`{"v100": {"('A', 1)": {"null": 1, "('B', 1)": [1]}}}`,
			`f:1: v100 / ('A', 1) / ('B', 1): got "]", want a list of 2 numbers`},
		{`{"v100": {"('A', 1)": {"null": 1, "('B', 1)": [1, 2, 3]}}}`,
			`f:1: v100 / ('A', 1) / ('B', 1): got "more numbers", want a list of 2 numbers`},
		{`{"v100": {"('A', 1)": {"null": 1}, "('A', 1)": {"null": 1}}}`,
			`f:1: v100 / ('A', 1): got "('A', 1)", want each key once`},
		{`{"v100": {"('A', 1)": {"null": 1}, "(\"A\", 1)": {"null": 1}}}`,
			`f:1: v100 / ("A", 1): got "(\"A\", 1)", want each job once`},
		{`{"v100": {"('A', 1)": {"null": 1`,
			`f:1: v100 / ('A', 1): got "the end of the file", want a complete JSON document`},
		{`{"_unconsolidated": {}}`, `f:1: _unconsolidated: got "", want the name of a GPU type`},
		{"{}\n{}", `f:2: got "{", want the end of the file`},
	} {
		err := newBuilder().gavel([]byte(c.text), "f")
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestChronusByHand(t *testing.T) {
	b := newBuilder()
	if err := b.chronus(
		[]byte(`{"net": {"2": {"1": 1.0, "2": 0.75}, "8": {"4": 0.25, "1": 1.0, "2": 0.5}}, "even": {"2": {"1": 1.0, "2": 1.002}}}`), "f"); err != nil {
		t.Fatal(err)
	}
	c := b.table()
	for _, k := range []struct {
		model       string
		gpus, nodes int
		want        float64
	}{
		{"net", 2, 1, 1}, {"net", 2, 2, .75}, {"net", 8, 2, .5}, {"net", 8, 3, .5}, {"net", 8, 4, .25}, {"net", 8, 8, .25},
		{"even", 2, 2, 1}, {"net", 4, 2, 0}, {"other", 2, 2, 0},
	} {
		if got, ok := c.Spread(k.model, "any", k.gpus, k.nodes); got != k.want || ok != (k.want > 0) {
			t.Errorf("%d GPUs of %s on %d nodes keep %v, %v; want %v", k.gpus, k.model, k.nodes, got, ok, k.want)
		}
	}
	if p, ok := c.Profile("net", ""); !ok || p.Name != "net" || p.Compute != 0 || p.Speeds != nil || p.Scaling != nil {
		t.Errorf("%+v, %v", p, ok)
	}
	if _, ok := c.Throughput("net", "", 2); ok || len(c.Types()) != 0 {
		t.Error("a table of relative speeds has throughputs")
	}
	for text, want := range map[string]string{
		`{"net": {"x": {}}}`:           `f:1: net / x: got "x", want a number of GPUs from 1 to 1048576`,
		`{"net": {"2": {"3": 1}}}`:     `f:1: net / 2 / 3: got "3", want a number of nodes from 1 to 2`,
		`{"net": {"2": {"1": null}}}`:  `f:1: net / 2 / 1: got "null", want 0 or a number from 1e-15 to 1e15`,
		`{"net": {"2": {"1": 1e400}}}`: `f:1: net / 2 / 1: got "1e400", want 0 or a number from 1e-15 to 1e15`,
		`{"": {}}`:                     `f:1: got "", want the name of a model`,
	} {
		if err := newBuilder().chronus([]byte(text), "f"); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestTuplesArePythons(t *testing.T) {
	for s, want := range map[string]int{
		`('A', 1)`: 1, `("A", 8)`: 8, `('A',2)`: 2, `('it"s, (x', 3)`: 3,
		`('A', 1`: 0, `'A', 1`: 0, `('A' 1)`: 0, `('A', -1)`: 0, `('', 1)`: 0, `('A\n', 1)`: 0, `(`: 0, `()`: 0,
		`('A', 1.5)`: 0, `("A', 1)`: 0,
	} {
		if _, n, ok := tuple(s); n != want || ok != (want > 0) {
			t.Errorf("%s: %d, %v; want %d", s, n, ok, want)
		}
	}
}
