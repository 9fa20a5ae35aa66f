package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"testing"

	"clustergym/internal/fault"
)

func TestEveryNamedMixIsValid(t *testing.T) {
	for _, n := range Names() {
		m, err := Named(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", n, err)
		}
		if m.Name != n {
			t.Errorf("mix %s calls itself %s", n, m.Name)
		}
	}
	if _, err := Named("nets"); err == nil || !strings.Contains(err.Error(), `"nets"`) ||
		!strings.Contains(err.Error(), "topdrl-cnn") {
		t.Errorf("unknown mix: %v", err)
	}
}

func TestChangingANamedMixLeavesTheOriginal(t *testing.T) {
	a, _ := Named("topdrl-cnn")
	h := a.Hash()
	a.Models[0].MB, a.Batches[0] = 1, 1
	b, _ := Named("topdrl-cnn")
	if b.Hash() != h || a.Hash() == h {
		t.Error("the copy shares memory with the original, or the hash does not see the figures")
	}
}

func TestDrawIsUniformAndDependsOnSeedAndIDAlone(t *testing.T) {
	m, _ := Named("topdrl-cnn")
	const n = 120000
	models, batches := map[string]int{}, map[int]int{}
	pairs := map[[2]int]int{}
	for i := range n {
		v, b := m.Draw(7, strconv.Itoa(i))
		models[v.Name]++
		batches[b]++
		pairs[[2]int{int(v.MB), b}]++
	}
	check := func(what any, got, cells int) {
		want := float64(n) / float64(cells)
		if d := math.Abs(float64(got)-want) / math.Sqrt(want); d > 5 {
			t.Errorf("%v drawn %d times, want about %.0f", what, got, want)
		}
	}
	for _, v := range m.Models {
		check(v.Name, models[v.Name], 12)
		for _, b := range m.Batches { // independent of each other
			check([2]any{v.Name, b}, pairs[[2]int{int(v.MB), b}], 48)
		}
	}
	for _, b := range m.Batches {
		check(b, batches[b], 4)
	}
	v, b := m.Draw(7, "job-5")
	for range 3 { // independent of earlier draws
		m.Draw(9, "x")
		if w, c := m.Draw(7, "job-5"); w != v || c != b {
			t.Fatal("a second draw for the same job differs")
		}
	}
	same := 0
	for i := range 1000 {
		v, b := m.Draw(7, strconv.Itoa(i))
		w, c := m.Draw(8, strconv.Itoa(i))
		if v == w && b == c {
			same++
		}
	}
	if same > 60 { // 1000/48 expected
		t.Errorf("seeds 7 and 8 agree on %d of 1000 jobs", same)
	}
}

func TestWeightsDecideHowOftenAModelComes(t *testing.T) {
	m := Mix{Models: []Model{{Name: "a", MB: 1, GFLOPs: 1}, {Name: "b", MB: 2, GFLOPs: 1}, {Name: "c", MB: 3, GFLOPs: 1}},
		Weights: []float64{1, 3, 0}, Batches: []int{32}}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for i := range 40000 {
		v, _ := m.Draw(1, strconv.Itoa(i))
		n[v.Name]++
	}
	if n["c"] != 0 || math.Abs(float64(n["a"])-10000) > 500 {
		t.Errorf("drawn %v, want 10000 a, 30000 b and no c", n)
	}
	if got := m.pick(math.Nextafter(1, 0)); got.Name != "b" {
		t.Errorf("the top of the range gives %s, want b", got.Name)
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	m := Mix{Models: []Model{{Name: "a", MB: -1, GFLOPs: 1},
		{Name: "a", MB: 1, GFLOPs: math.NaN(), Ms: -1, Batch: -1, MemMB: math.Inf(1)}}, Weights: []float64{-1},
		Batches: []int{0}}
	var keys []string
	for _, f := range fault.All(m.Validate()) {
		keys = append(keys, f.Key)
	}
	if got, want := strings.Join(keys, " "),
		"weights models[0].mb models[1].name models[1].gflops models[1].ms models[1].batch models[1].mem_mb weights[0] weights batches[0]"; got != want {
		t.Errorf("faults %s\nwant   %s", got, want)
	}
}

func TestDrawAllocatesNothing(t *testing.T) {
	m, _ := Named("topdrl-cnn")
	if n := testing.AllocsPerRun(100, func() { m.Draw(3, "application_17"); m.Find("senet") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if m.Find("senet") == nil || m.Find("gpt") != nil {
		t.Error("Find")
	}
}

func BenchmarkDraw(b *testing.B) {
	m, _ := Named("topdrl-cnn")
	b.ReportAllocs()
	for b.Loop() {
		m.Draw(3, "application_17")
	}
}

// Hash returns the SHA-256, in hexadecimal digits, of everything that a draw depends on and of all figures, but not of
// the mix's own name. Figures that are not given are left out, so that a new field of Model does not change the hash of
// mixes that do not use it.
func (m *Mix) Hash() string {
	var b []byte
	num := func(v float64) { b = append(strconv.AppendUint(b, math.Float64bits(v), 16), ' ') }
	for _, v := range m.Models {
		b = strconv.AppendQuote(b, v.Name)
		num(v.MB)
		num(v.GFLOPs)
		for i, w := range [...]float64{v.Ms, float64(v.Batch), v.MemMB} {
			if w != 0 {
				b = append(b, "tbm"[i])
				num(w)
			}
		}
		if v.Skewed {
			b = append(b, 's')
		}
	}
	b = append(b, '\n')
	for _, w := range m.Weights {
		num(w)
	}
	b = append(b, '\n')
	for _, n := range m.Batches {
		b = append(strconv.AppendInt(b, int64(n), 10), ' ')
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
