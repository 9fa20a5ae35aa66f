package profile

import (
	"context"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clustergym/traces"
)

func of(model string) *traces.Job { return &traces.Job{Model: model} }

func TestInterferenceFileByHand(t *testing.T) {
	x, err := ReadInterference(strings.NewReader("model,other,kept\nA,B,0.5\nA,*,0.75\n*,B,0.25\n*,*,0.9\n\"A (D, batch size 32)\",B,1\nC,C,1e-3\n"), "f")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		victim, other string
		want          float64
	}{
		{"A", "B", .5}, {"A", "C", .75}, {"A", "Z", .75}, {"C", "B", .25}, {"Z", "B", .25}, {"Z", "Y", .9}, {"B", "A", .9},
		{"C", "C", 1e-3},
		{"A (D, batch size 32)", "B", 1}, {"A (D, batch size 64)", "B", .5}, {"A (batch size 1)", "C (x)", .75}, {"", "", .9},
		{"*", "B", .25},
	} {
		if got := x.Kept(of(c.victim), of(c.other)); got != c.want {
			t.Errorf("%q beside %q keeps %v, want %v", c.victim, c.other, got, c.want)
		}
	}
	if got := x.Kept(&traces.Job{Model: "Z", Profile: &traces.Profile{Name: "A"}}, of("B")); got != .5 {
		t.Errorf("by the profile's name %v, want 0.5", got)
	}
	if got := x.Kept(&traces.Job{Model: "A", Profile: &traces.Profile{Name: "Z"}}, of("B")); got != .5 {
		t.Errorf("by the model's name %v, want 0.5", got)
	}
	few, err := ReadInterference(strings.NewReader("kept,other,model\r\n0.5,B,A\r\n"), "f")
	if err != nil {
		t.Fatal(err)
	}
	if got := []float64{few.Kept(of("A"), of("B")), few.Kept(of("B"), of("A")), few.Kept(of("A"), of("Z"))}; got[0] !=
		.5 || got[1] != 1 || got[2] != 1 {
		t.Errorf("%v, want only the first pair slowed", got)
	}
}

func TestInterferenceFaults(t *testing.T) {
	const h = "model,other,kept\n"
	for text, want := range map[string]string{
		"model,other\n":             `f:1: got "model,other", want a header with also kept`,
		h:                           `f:1: got "no rows", want at least one pair of models`,
		h + "A,B,0\n":               `f:2: kept: got "0", want a number in (0, 1]`,
		h + "A,B,1.01\n":            `f:2: kept: got "1.01", want a number in (0, 1]`,
		h + "A,,1\n":                `f:2: other: got "", want a name`,
		h + "A,B,1\nB,A,1\nA,B,1\n": `f:4: other: got "B", want each pair of model and other once`,
	} {
		if _, err := ReadInterference(strings.NewReader(text), "f"); err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	var b strings.Builder
	b.WriteString(h)
	for i := range maxNames {
		b.WriteString(strconv.Itoa(i) + ",*,0.5\n")
	}
	if _, err := ReadInterference(strings.NewReader(b.String()), "f"); err == nil ||
		!strings.Contains(err.Error(), "f:4097: model: ") {
		t.Error(err)
	}
}

func TestInterferenceOfATableIsItsKept(t *testing.T) {
	g := gavelTable(t)
	x, err := g.Interference()
	if err != nil {
		t.Fatal(err)
	}
	names := append(g.Models(), "A", "A (batch size 64)", "D", "")
	for _, v := range names {
		for _, o := range names {
			want, ok := g.Kept(v, o)
			if !ok {
				want = 1
			}
			if got := x.Kept(of(v), of(o)); got != want {
				t.Errorf("%q beside %q keeps %v, want %v", v, o, got, want)
			}
		}
	}
}

func TestSeededInterferenceHasDeepSharesFigures(t *testing.T) {
	for _, seed := range []uint64{0, 1, 42} {
		x, err := LoadInterference(context.Background(), nil, "seeded:"+strconv.FormatUint(seed, 10))
		if err != nil {
			t.Fatal(err)
		}
		sum, below, n := 0.0, 0, 0
		for i := range 100 {
			for j := range 100 {
				k := x.Kept(of("model-"+strconv.Itoa(i)), of("model-"+strconv.Itoa(j)))
				if k < .123 || k > 1 {
					t.Fatalf("keeps %v", k)
				}
				sum += k
				n++
				if k < .9 {
					below++
				}
			}
		}
		if mean, share := sum/float64(n), float64(below)/float64(n); math.Abs(mean-.789) > .02 || math.Abs(share-.65) > .02 {
			t.Errorf("seed %d: mean %.4f, %.4f of the pairs below 0.9", seed, mean, share)
		}
	}
	// With many pairs the share is exact too.
	sum, below := 0.0, 0.0
	const n = 200000
	for i := range uint64(n) {
		k := seededKept(i * (math.MaxUint64 / n))
		sum += k / n
		if k < .9 {
			below += 1. / n
		}
	}
	if math.Abs(sum-.789) > 1e-4 || math.Abs(below-.65) > 1e-4 {
		t.Errorf("mean %v, share %v", sum, below)
	}
	x, y := Seeded(1), Seeded(2)
	if x.Kept(of(""), of("b")) != 1 || x.Kept(of("a"), of("")) != 1 {
		t.Error("a job without a name is slowed")
	}
	if a := x.Kept(of("a"), of("b")); a != Seeded(1).Kept(of("a"), of("b")) || a == x.Kept(of("b"), of("a")) ||
		a == y.Kept(of("a"), of("b")) {
		t.Error("the draw does not depend on seed and ordered pair alone")
	}
}

func TestLoadInterferenceTellsFilesFromTables(t *testing.T) {
	dir := write(t,
		map[string]string{"own.csv": "model,other,kept\nA,B,0.5\n", "gavel.json": smallGavel, "t.csv": tensors,
			"bad.csv": "model,kept\n", "pairs/p.csv": pairsHeader + "0,A,D,1,32,0,0.9,B,E,1,64,1,1.05,50\n"})
	for name, want := range map[string]float64{"own.csv": .5, "gavel.json": .6, "pairs": .9, "pairs/p.csv": .9} {
		x, err := LoadInterference(context.Background(), nil, filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Kept(of("A"), of("B")); !near(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for spec, want := range map[string]string{
		"seeded:x":  `interference: got "seeded:x", want seeded:<seed> with a whole number from 0 to 18446744073709551615`,
		"seeded:-1": `interference: got "seeded:-1", want seeded:<seed> with a whole number from 0 to 18446744073709551615`,
		filepath.Join(dir,
			"t.csv"): "the table has no co-locations, want one of Gavel or Lucid, or a file with the columns model,other,kept",
		filepath.Join(dir, "bad.csv"): `bad.csv:1: got "model,kept", want a header with also other`,
		filepath.Join(dir, "none"):    "there is no such file or folder",
	} {
		if _, err := LoadInterference(context.Background(), nil, spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", spec, err, want)
		}
	}
}

func TestKeptAllocatesNothing(t *testing.T) {
	x, _ := gavelTable(t).Interference()
	s := Seeded(1)
	a, b := of("A (batch size 64)"), &traces.Job{Profile: &traces.Profile{Name: "B"}}
	if n := testing.AllocsPerRun(100, func() { x.Kept(a, b); s.Kept(a, b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkKept(b *testing.B) {
	x, _ := gavelTable(b).Interference()
	v, o := of("A (batch size 16)"), of("B")
	b.ReportAllocs()
	for b.Loop() {
		x.Kept(v, o)
	}
}
