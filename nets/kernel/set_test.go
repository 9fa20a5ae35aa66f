package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/rng"
)

// eachSet runs f as a subtest under every set that this machine can run.
func eachSet(t *testing.T, f func(t *testing.T)) {
	before := Set()
	defer func() {
		if err := Use(before); err != nil {
			t.Fatal(err)
		}
	}()
	for _, name := range Sets() {
		if err := Use(name); err != nil {
			t.Fatal(err)
		}
		t.Run(name, f)
	}
}

func TestSetsAreChosenByName(t *testing.T) {
	before := Set()
	defer func() {
		if err := Use(before); err != nil {
			t.Fatal(err)
		}
	}()
	if names := Sets(); names[len(names)-1] != "portable" || before != names[0] {
		t.Errorf("sets %v, at first %s; want portable last, and the first at first", names, before)
	}
	if err := Use("portable"); err != nil || Set() != "portable" {
		t.Errorf("set %s, error %v", Set(), err)
	}
	if err := Use(Auto); err != nil || Set() != Sets()[0] {
		t.Errorf("set %s, error %v; want the first of %v", Set(), err, Sets())
	}
	if err := Use("sse"); err == nil || !strings.Contains(err.Error(), "portable") {
		t.Errorf("error %v, want one that names the sets", err)
	}
}

// specials are numbers that break loops written for ordinary ones.
var specials = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	1e-45, -1e-45, 1.2e-38, 3e38, -3e38, 88.73, -87.34, 89, -104, 7.905, -7.906, 1e10, -1e10,
}

func unusual(r *rand.Rand, n int, share float64) []float32 {
	x := noise[float32](r, n)
	for i := range x {
		if r.Float64() < share {
			x[i] = specials[r.IntN(len(specials))]
		}
	}
	return x
}

// near reports whether x and y are the same up to rounding: the same kind of number, and within tol relative to
// scale.
func near(x, y float32, scale, tol float64) bool {
	a, b := float64(x), float64(y)
	if a == b || math.IsNaN(a) && math.IsNaN(b) {
		return true
	}
	if math.IsNaN(a) || math.IsNaN(b) || math.IsInf(a, 0) || math.IsInf(b, 0) {
		return false
	}
	return math.Abs(a-b) <= tol*max(scale, math.Abs(a), math.Abs(b))+1e-37
}

// same compares every kernel of s with the portable one on the sizes and numbers that r draws.
func same(s *set[float32], r *rand.Rand, share float64) error {
	m, n, k := 1+r.IntN(30), 1+r.IntN(150), r.IntN(40)
	if r.IntN(4) == 0 {
		n = 1 + r.IntN(9)
	}
	compare := func(what string, got, want []float32, scale []float64, tol float64) error {
		for i := range want {
			if !near(got[i], want[i], scale[min(i, len(scale)-1)], tol) {
				return fmt.Errorf("%s, m %d n %d k %d: element %d is %v, portable %v", what, m, n, k, i, got[i], want[i])
			}
		}
		if got[len(want)] != 42 {
			return fmt.Errorf("%s, m %d n %d k %d: wrote beyond the end", what, m, n, k)
		}
		return nil
	}
	room := func(n int) []float32 {
		x := make([]float32, n+1)
		for i := range x {
			x[i] = 42
		}
		return x
	}
	// Sums are compared relative to the sum of the magnitudes, and only where that is finite: which of two
	// infinities an overflowing sum meets first depends on rounding.
	magnitudes := func(a, b func(i, p int) float32, bias []float32) []float64 {
		out := make([]float64, m*n)
		for i := range m {
			for j := range n {
				if bias != nil {
					out[i*n+j] = math.Abs(float64(bias[j]))
				}
				for p := range k {
					out[i*n+j] += math.Abs(float64(a(i, p)) * float64(b(p, j)))
				}
			}
		}
		return out
	}
	tame := func(x []float32) []float32 { // no overflow in sums of products
		for i, v := range x {
			if math.Abs(float64(v)) > 1e15 && !math.IsInf(float64(v), 0) {
				x[i] = 3
			}
		}
		return x
	}
	a, b, bias := tame(unusual(r, m*k, share)), tame(unusual(r, k*n, share)), tame(unusual(r, n, share))
	if r.IntN(3) == 0 {
		bias = nil
	}
	at, bt := func(i, p int) float32 { return a[i*k+p] }, func(p, j int) float32 { return b[p*n+j] }
	for _, act := range []Act{Identity, ReLU, Tanh} {
		got, want := room(m*n), room(m*n)
		s.matMul(got[:m*n], a, b, bias, m, n, k, act)
		portable.matMul(want[:m*n], a, b, bias, m, n, k, act)
		if err := compare("matMul "+act.String(), got, want[:m*n], magnitudes(at, bt, bias), 1e-5); err != nil {
			return err
		}
	}
	got, want := room(m*n), room(m*n)
	x := make([]float32, k*m) // the transpose of a
	for i := range m {
		for p := range k {
			x[p*m+i] = a[i*k+p]
		}
	}
	s.matMulTN(got[:m*n], x, b, k, n, m)
	portable.matMulTN(want[:m*n], x, b, k, n, m)
	if err := compare("matMulTN", got, want[:m*n], magnitudes(at, bt, nil), 1e-5); err != nil {
		return err
	}
	got, want = room(m*n), room(m*n)
	y := make([]float32, n*k) // the transpose of b
	for j := range n {
		for p := range k {
			y[j*k+p] = b[p*n+j]
		}
	}
	scratch := room(n * k)
	s.matMulNT(got[:m*n], a, y, m, n, k, scratch[:n*k])
	portable.matMulNT(want[:m*n], a, y, m, n, k, make([]float32, n*k))
	if err := compare("matMulNT", got, want[:m*n], magnitudes(at, bt, nil), 1e-5); err != nil {
		return err
	}
	if scratch[n*k] != 42 {
		return fmt.Errorf("matMulNT, n %d k %d: wrote beyond its scratch space", n, k)
	}
	got, want = room(n), room(n)
	s.colSums(got[:n], b, k, n)
	portable.colSums(want[:n], b, k, n)
	one := []float64{1}
	if err := compare("colSums", got, want[:n], magnitudes(func(int, int) float32 { return 1 }, bt, nil), 1e-5); err !=
		nil {
		return err
	}
	size := r.IntN(100)
	v, w := unusual(r, size, share), unusual(r, size, share)
	for _, act := range []Act{Identity, ReLU, Tanh} {
		got, want := room(size), room(size)
		s.activate(got[:size], v, act)
		portable.activate(want[:size], v, act)
		if err := compare("activate "+act.String(), got, want[:size], one, 1e-6); err != nil {
			return err
		}
		value := append([]float32(nil), want[:size]...)
		got, want = room(size), room(size)
		s.actGrad(got[:size], value, w, act)
		portable.actGrad(want[:size], value, w, act)
		against := one // 1 - y² cancels: its error is relative to dy
		for _, dy := range w {
			against = append(against, math.Abs(float64(dy)))
		}
		if size > 0 {
			against = against[1:]
		}
		if err := compare("actGrad "+act.String(), got, want[:size], against, 1e-6); err != nil {
			return err
		}
	}
	got, want = room(size), room(size)
	s.exp(got[:size], v)
	portable.exp(want[:size], v)
	if err := compare("exp", got, want[:size], []float64{0}, 1e-6); err != nil {
		return err
	}
	if n > 0 {
		legal := make([]float32, m*n)
		for i := range legal {
			legal[i] = float32(r.IntN(3))
		}
		if r.IntN(3) == 0 {
			legal = nil
		}
		logits := tame(unusual(r, m*n, share/10))
		got, want := room(m*n), room(m*n)
		s.logSoftmax(got[:m*n], logits, legal, m, n)
		portable.logSoftmax(want[:m*n], logits, legal, m, n)
		if err := compare("logSoftmax", got, want[:m*n], one, 1e-5); err != nil {
			return err
		}
		got, want = room(m*n), room(m*n)
		copy(want, logits)
		s.add(got[:m*n], logits, want)
		portable.add(want[:m*n], logits, want)
		if err := compare("add", got, want[:m*n], one, 0); err != nil {
			return err
		}
	}
	{ // m groups of k rows of h columns, bit for bit
		k, h := 1+r.IntN(12), 1+r.IntN(70)
		all := m * k * h
		x, context := unusual(r, all, share), unusual(r, m*h, share)
		for j := 0; j < all; j += 1 + r.IntN(5) { // equal elements, so that several attain the maximum
			x[j] = float32(r.IntN(3))
		}
		bits := func(what string, got, want []float32) error {
			for i, w := range want {
				if g := got[i]; g != w && !(g != g && w != w) { // zeros may differ in their sign
					return fmt.Errorf("%s, %d groups of %d rows of %d: element %d is %v, portable %v", what, m, k, h, i, g, w)
				}
			}
			if got[len(want)] != 42 {
				return fmt.Errorf("%s, %d groups of %d rows of %d: wrote beyond the end", what, m, k, h)
			}
			return nil
		}
		for _, act := range []Act{Identity, ReLU} {
			got, want := room(all), room(all)
			s.addRows(got[:all], x, context, m, k, h, act)
			portable.addRows(want[:all], x, context, m, k, h, act)
			if err := bits("addRows "+act.String(), got, want[:all]); err != nil {
				return err
			}
		}
		for _, div := range []float32{1, float32(k)} {
			got, want := room(m*h), room(m*h)
			s.sumRows(got[:m*h], x, m, k, h, div)
			portable.sumRows(want[:m*h], x, m, k, h, div)
			if err := bits("sumRows", got, want[:m*h]); err != nil {
				return err
			}
		}
		top, want := room(m*h), room(m*h)
		s.maxRows(top[:m*h], x, m, k, h)
		portable.maxRows(want[:m*h], x, m, k, h)
		if err := bits("maxRows", top, want[:m*h]); err != nil {
			return err
		}
		got, want := room(all), room(all)
		s.maxRowsGrad(got[:all], x, top, context, m, k, h)
		portable.maxRowsGrad(want[:all], x, top, context, m, k, h)
		if err := bits("maxRowsGrad", got, want[:all]); err != nil {
			return err
		}
	}
	u := tame(append([]float32(nil), v...))
	if p, q := s.sumSquares(u), portable.sumSquares(u); !(math.Abs(p-q) <= 1e-12*math.Abs(q)) &&
		!(math.IsNaN(p) && math.IsNaN(q)) && p != q {
		return fmt.Errorf("sumSquares of %d: %v, portable %v", size, p, q)
	}
	step := AdamStep{Beta1: 0.9, Beta2: 0.999, Rest1: 0.1, Rest2: 0.001, Rate: 1e-3, Root: 1.3, Eps: 1e-8}
	var parts [2][3][]float32
	p0, m0, v0 := noise[float32](r, size), noise[float32](r, size), noise[float32](r, size)
	for i := range v0 {
		v0[i] *= v0[i]
	}
	for i, f := range []*set[float32]{s, &portable} {
		for j, x := range [][]float32{p0, m0, v0} {
			parts[i][j] = append(append([]float32(nil), x...), 42)
		}
		f.adam(parts[i][0][:size], u, parts[i][1][:size], parts[i][2][:size], step)
	}
	for j, name := range []string{"parameters", "first moments", "second moments"} {
		if err := compare("adam, "+name, parts[0][j], parts[1][j][:size], one, 1e-5); err != nil {
			return err
		}
	}
	return nil
}

// sameConv is same for convolutions. Their sums are compared relative to the same sums over absolute values.
func sameConv(s *set[float32], r *rand.Rand) error {
	g := Conv{H: 1 + r.IntN(12), W: 1 + r.IntN(16), C: 1 + r.IntN(4), KH: 1 + r.IntN(5), KW: 1 + r.IntN(5),
		SH: 1 + r.IntN(4), SW: 1 + r.IntN(4)}
	if r.IntN(3) == 0 {
		g.H, g.W, g.C = 1+r.IntN(6), 1+r.IntN(6), 1+r.IntN(40)
	}
	if r.IntN(8) == 0 {
		g.SH = 1 + r.IntN(2*maxStride)
	}
	g.PH, g.PW = r.IntN(g.KH), r.IntN(g.KW)
	if possible := g.Check() == nil; !possible || g.Tiles() {
		return nil
	}
	rows, filters := 1+r.IntN(3), 1+r.IntN(36)
	x, y, w := rows*g.H*g.W*g.C, rows*g.OutH()*g.OutW()*filters, g.Patch()*filters
	act := []Act{Identity, ReLU, Tanh}[r.IntN(3)]
	image, dy, filter, bias := noise[float32](r, x), noise[float32](r, y), noise[float32](r, w), noise[float32](r, filters)
	activate(image, image, act) // as values of the activation
	size := func(in []float32) []float32 {
		out := slices.Clone(in)
		for i, v := range out {
			out[i] = max(v, -v)
		}
		return out
	}
	for _, c := range []struct {
		name string
		n    int
		run  func(s *set[float32], out, image, dy, filter, bias, scratch []float32, act Act)
	}{
		{"convolve", y, func(s *set[float32], out, image, _, filter, bias, scratch []float32, act Act) {
			s.convolve(out, image, filter, bias, rows, filters, &g, act, scratch)
		}},
		{"convGradW", w, func(s *set[float32], out, image, dy, _, _, scratch []float32, _ Act) {
			s.convGradW(out, image, dy, rows, filters, &g, scratch)
		}},
		{"convGradX", x, func(s *set[float32], out, image, dy, filter, _, scratch []float32, act Act) {
			s.convGradX(out, dy, filter, image, rows, filters, &g, act, scratch)
		}},
	} {
		var out [3][]float32
		for i, f := range []*set[float32]{s, &portable, &portable} {
			scratch := make([]float32, g.Scratch(filters)+1)
			for j := range scratch { // content left by earlier work
				scratch[j] = 42
			}
			out[i] = make([]float32, c.n+1)
			for j := range out[i] {
				out[i][j] = 42
			}
			if i < 2 {
				c.run(f, out[i][:c.n], image, dy, filter, bias, scratch[:len(scratch)-1], act)
			} else {
				c.run(f, out[i][:c.n], size(image), size(dy), size(filter), size(bias), scratch[:len(scratch)-1], Identity)
			}
			if scratch[len(scratch)-1] != 42 || out[i][c.n] != 42 {
				return fmt.Errorf("%s %+v, %d images, %d filters: wrote beyond the end", c.name, g, rows, filters)
			}
		}
		for j := range c.n {
			if !near(out[0][j], out[1][j], float64(out[2][j]), 1e-5) {
				return fmt.Errorf("%s %v %+v, %d images, %d filters: element %d is %v, portable %v", c.name, act, g, rows, filters,
					j, out[0][j], out[1][j])
			}
		}
	}
	return nil
}

func TestFastSetsEqualThePortableOne(t *testing.T) {
	for _, s := range sets[:len(sets)-1] {
		t.Run(s.name, func(t *testing.T) {
			r := rng.Stream(9, "sets")
			for i := range 120 {
				if err := same(s, r, []float64{0, 0.02, 0.3}[i%3]); err != nil {
					t.Fatalf("case %d: %v", i, err)
				}
				if err := sameAttention(s, r); err != nil {
					t.Fatalf("case %d: %v", i, err)
				}
				if i%2 > 0 {
					continue
				}
				if err := sameConv(s, r); err != nil {
					t.Fatalf("case %d: %v", i, err)
				}
			}
		})
	}
}

func FuzzFastSets(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, share uint8) {
		for _, s := range sets[:len(sets)-1] {
			if err := same(s, rng.Stream(seed, "fuzz"), float64(share)/255); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
			if err := sameConv(s, rng.Stream(seed, "convolutions")); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
			if err := sameAttention(s, rng.Stream(seed, "attention")); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		}
	})
}

// The generated files equal the generator's output. The generator has its own libraries, fetched on first use.
func TestGeneratedFilesAreUpToDate(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the generator")
	}
	dir := t.TempDir()
	for _, name := range []string{"avx512", "avx2"} {
		s, stubs := filepath.Join(dir, name+"_amd64.s"), filepath.Join(dir, name+"_amd64.go")
		cmd := exec.Command("go", "run", ".", "-isa", name, "-pkg", "kernel", "-out", s, "-stubs", stubs)
		cmd.Dir = "gen"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, path := range []string{s, stubs} {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Base(path))
			if err != nil {
				t.Fatal(err)
			}
			// The first line has the command, and therefore the output directory.
			_, wantBody, _ := strings.Cut(string(want), "\n")
			_, gotBody, _ := strings.Cut(string(got), "\n")
			if wantBody != gotBody {
				t.Errorf("%s is not what gen writes; run go generate ./nets/kernel", filepath.Base(path))
			}
		}
	}
}
