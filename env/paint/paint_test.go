package paint

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
)

func canvas(t *testing.T) *Canvas {
	t.Helper()
	c, err := On(env.NewFrame())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pixels counts the pixels of a colour within r.
func pixels(c *Canvas, r image.Rectangle, of color.RGBA) int {
	n := 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		line := c.img.Pix[c.img.PixOffset(r.Min.X, y):][:4*r.Dx()]
		for ; len(line) > 0; line = line[4:] {
			if line[0] == of.R && line[1] == of.G && line[2] == of.B {
				n++
			}
		}
	}
	return n
}

// outside fails if something other than paper is outside of r.
func outside(t *testing.T, c *Canvas, r image.Rectangle) {
	t.Helper()
	all := c.img.Rect
	want := all.Dx()*all.Dy() - r.Dx()*r.Dy()
	if white, within := pixels(c, all, Paper), pixels(c, r, Paper); white-within != want {
		t.Errorf("something is drawn outside of %v", r)
	}
}

var whole = image.Rect(0, 0, env.FrameWidth, env.FrameHeight)

func TestCanvasesHaveOneSize(t *testing.T) {
	for _, dst := range []*image.RGBA{nil, image.NewRGBA(image.Rect(0, 0, 640, 479)),
		image.NewRGBA(image.Rect(1, 0, 641, 480))} {
		if _, err := On(dst); !errors.Is(err, env.ErrFrame) {
			t.Errorf("%v: %v, want %v", dst, err, env.ErrFrame)
		}
	}
}

// Shapes are cut at the edges of the picture, however far they reach.
func TestShapesAreCut(t *testing.T) {
	c := canvas(t)
	c.Rect(image.Rect(-5, -5, 10, 10), Ink)
	if n := pixels(c, whole, Ink); n != 100 {
		t.Errorf("a corner of 10 by 10 has %d pixels", n)
	}
	c.Rect(image.Rect(700, 10, 800, 20), Bad)
	c.Polygon(Bad, Point{700, 0}, Point{800, 0}, Point{800, 50})
	c.Polygon(Bad, Point{math.NaN(), 0}, Point{20, 20}, Point{20, 40})
	c.Polygon(Bad, Point{1e12, 0}, Point{20, 20}, Point{20, 40})
	c.Polygon(Bad, Point{20, 20}, Point{20, 40})
	c.Line(Point{50, 50}, Point{50, 50}, 3, Bad)
	if n := pixels(c, whole, Bad); n != 0 {
		t.Errorf("%d pixels of shapes that are not in the picture", n)
	}
	c.Polygon(Good, Point{-100, 100}, Point{300, 100}, Point{300, 200}, Point{-100, 200})
	if n := pixels(c, whole, Good); n != 300*100 {
		t.Errorf("a rectangle that begins left of the picture has %d pixels, want 30000", n)
	}
	c = canvas(t)
	c.Disc(Point{200, 200}, 20, Good)
	if n := float64(pixels(c, whole, Good)); math.Abs(n-math.Pi*400) > 0.1*math.Pi*400 {
		t.Errorf("a disc of radius 20 has %v pixels", n)
	}
	c.Text(600, 470, strings.Repeat("long ", 100), Ink)
	c.Head(strings.Repeat("title ", 50), strings.Repeat("more ", 50), "\x00\xff weird "+strings.Repeat("second ", 50))
}

func TestCutShortens(t *testing.T) {
	for _, x := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcdef", 4, "ab.."}, {"abc", 2, "ab"}, {"abc", -1, ""}, {"", 5, ""}} {
		if got := Cut(x.s, x.n); got != x.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", x.s, x.n, got, x.want)
		}
	}
}

func TestColoursOfNeighboursDiffer(t *testing.T) {
	distance := func(a, b color.RGBA) float64 {
		return math.Hypot(math.Hypot(float64(a.R)-float64(b.R), float64(a.G)-float64(b.G)), float64(a.B)-float64(b.B))
	}
	for i := range 1000 {
		for k := 1; k <= 4; k++ {
			if d := distance(Colour(i), Colour(i+k)); d < 40 {
				t.Errorf("jobs %d and %d: %v and %v are %.0f apart", i, i+k, Colour(i), Colour(i+k), d)
			}
		}
		for _, o := range []color.RGBA{Free, Down, Paper} {
			if d := distance(Colour(i), o); d < 40 {
				t.Errorf("job %d looks like %v", i, o)
			}
		}
	}
	if Colour(-3).A != 255 {
		t.Error("a negative number has no colour")
	}
}

// machines returns a cluster of that many racks of machines of GPUs.
func machines(racks, nodes, gpus int) *Cluster {
	k := &Cluster{First: []int{0}, Held: make([]color.RGBA, racks*nodes*gpus), Down: make([]bool, racks*nodes)}
	for m := range racks * nodes {
		k.First, k.Rack = append(k.First, (m+1)*gpus), append(k.Rack, m/nodes)
	}
	return k
}

var area = image.Rect(Margin, 70, env.FrameWidth-Margin, 238)

// Clusters of every size fit, and a GPU that is held shows wherever it is.
func TestClustersFit(t *testing.T) {
	for _, x := range []struct{ racks, nodes, gpus int }{
		{1, 1, 1}, {1, 2, 4}, {2, 4, 4}, {1, 1, 512}, {8, 4, 8}, {40, 1, 8}, {1, 64, 8}, {25, 50, 8}, {1, 10_000, 1},
		{1, 1, 10_000}, {3, 1, 100}, {100, 125, 8},
	} {
		k := machines(x.racks, x.nodes, x.gpus)
		c := canvas(t)
		c.Cluster(area, k)
		outside(t, c, area)
		last := 0
		for _, g := range []int{len(k.Held) - 1, 0, len(k.Held) / 2} {
			before := bytes.Clone(c.img.Pix)
			k.Held[g] = Bad
			c = canvas(t)
			c.Cluster(area, k)
			if len(k.Held) > 1 && bytes.Equal(before, c.img.Pix) && last != g {
				t.Errorf("%v: GPU %d is held and nothing shows", x, g)
			}
			last = g
		}
		outside(t, c, area)
	}
}

// A hundred thousand GPUs and more stand several to a cell.
func TestAHugeClusterIsOneOfCells(t *testing.T) {
	k := machines(50, 500, 8)
	for i := range k.Held[:100_000] {
		k.Held[i] = Good
	}
	for m := 20_000; m < 25_000; m++ {
		k.Down[m] = true
	}
	k.Marked = []int{150_000}
	k.Parts = []Part{{GPU: 120_000, Milli: 500, Job: Good}}
	c := canvas(t)
	if text := c.Cluster(area, k); !strings.Contains(text, "to a square") {
		t.Errorf("the caption is %q", text)
	}
	outside(t, c, area)
	full, free, down := pixels(c, area, scaleHigh), pixels(c, area, Free), pixels(c, area, Down)
	if full == 0 || math.Abs(float64(free)/float64(full)-0.6) > 0.05 || math.Abs(float64(down)/float64(full)-0.4) > 0.05 {
		t.Errorf("%d pixels are full, %d free and %d down, want 100 to 60 to 40", full, free, down)
	}
	if pixels(c, area, Accent) != (manyCell-1)*(manyCell-1) {
		t.Error("the marked cell is not marked")
	}
}

func TestPartsOfAGPUStandSideBySide(t *testing.T) {
	k := machines(1, 1, 2)
	k.Parts = []Part{{0, 500, Good}, {0, 250, Bad}, {1, 1000, Ink}}
	c := canvas(t)
	c.Cluster(area, k)
	side := largestCell - 1
	cell := image.Rect(area.Min.X+2, area.Min.Y+2, area.Min.X+2+side, area.Min.Y+2+side)
	total := float64(side * side)
	for of, want := range map[color.RGBA]float64{Good: 0.5, Bad: 0.25, Free: 0.25} {
		if got := float64(pixels(c, cell, of)) / total; math.Abs(got-want) > 0.03 {
			t.Errorf("%v has %.3f of the cell, want %.2f", of, got, want)
		}
	}
	if got := float64(pixels(c, cell.Add(image.Pt(largestCell, 0)), Ink)); got != total {
		t.Errorf("the whole GPU has %v pixels, want %v", got, total)
	}
}

func TestFailedMachinesAndMarkedGPUsStandOut(t *testing.T) {
	for _, nodes := range []int{2, 40, 400} {
		k := machines(1, nodes, 8)
		c := canvas(t)
		c.Cluster(area, k)
		if n := pixels(c, area, Down) + pixels(c, area, Accent); n != 0 {
			t.Errorf("%d machines: %d pixels of nothing", nodes, n)
		}
		k.Down[0] = true
		k.Marked = []int{8}
		c.Cluster(area, k)
		if pixels(c, area, Down) < 8 || pixels(c, area, Accent) < 4 {
			t.Errorf("%d machines: %d pixels are down, %d marked", nodes, pixels(c, area, Down), pixels(c, area, Accent))
		}
	}
	if text := canvas(t).Cluster(area, &Cluster{First: []int{0}}); text != "no GPUs" {
		t.Errorf("the caption of nothing is %q", text)
	}
}

// Queues of every length stay between their heights. The jobs may be anything.
func TestQueuesFit(t *testing.T) {
	seed := testseed.Or(1)
	t.Logf("%s=%d", testseed.Key, seed)
	src := rng.Stream(seed, "paint/queue")
	for n := range 90 {
		var jobs []Waiting
		for i := range n {
			jobs = append(jobs, Waiting{
				Label: []string{"", "7", "1023"}[i%3], Name: strings.Repeat("n",
					src.IntN(40)), Colour: Colour(i), GPUs: math.Ldexp(src.Float64(), src.IntN(20)),
				Estimate: time.Duration(src.Int64() >> src.IntN(63)), Waited: time.Duration(src.Int64() >> src.IntN(63)),
				Fits: src.IntN(2) == 0, Asked: src.IntN(9) == 0, Note: strings.Repeat("x", src.IntN(2)*src.IntN(20)),
			})
		}
		c := canvas(t)
		c.Queue(276, 476, jobs, n+src.IntN(3))
		outside(t, c, image.Rect(0, 276, env.FrameWidth, 477))
		if n > 0 && pixels(c, whole, Colour(0)) == 0 {
			t.Errorf("%d jobs: the first is not there", n)
		}
	}
}

// A bar grows with the estimate and with the GPUs, and darkens with time.
func TestBarsSayWhatAJobIs(t *testing.T) {
	dark := func(j Waiting) (pixels int, sum float64) {
		c := canvas(t)
		c.row(100, &j)
		for x := barAt; x < barEnd; x++ {
			for y := 100; y < 100+rowHeight; y++ {
				if p := c.img.RGBAAt(x, y); p != Paper && p != Ink && p != Rule && p.B > p.R {
					pixels++
					sum += float64(p.R)
				}
			}
		}
		return pixels, sum / float64(max(pixels, 1))
	}
	base := Waiting{Name: "j", GPUs: 1, Estimate: time.Hour, Waited: time.Minute}
	n, red := dark(base)
	long, large, old := base, base, base
	long.Estimate, large.GPUs, old.Waited = 24*time.Hour, 16, 12*time.Hour
	if m, _ := dark(long); m <= n {
		t.Errorf("the bar of a day has %d pixels, that of an hour %d", m, n)
	}
	if m, _ := dark(large); m <= n {
		t.Errorf("the bar of 16 GPUs has %d pixels, that of one %d", m, n)
	}
	if _, r := dark(old); r >= red {
		t.Errorf("the bar of a job that has waited 12 hours is %v red, that of a minute %v", r, red)
	}
}

// Every kind of field has a picture within its part: none of them ends the server that draws it.
func TestFieldsOfEveryShapeFit(t *testing.T) {
	inf := float32(math.Inf(1))
	shapes := [][]int{nil, {1}, {3}, {8}, {9}, {80}, {0}, {16, 7}, {7, 16}, {500, 3}, {3, 500}, {2, 1000}, {1000, 2},
		{4, 5, 6}, {20_000}, {300, 300}, {2, 0}}
	bounds := [][2]float32{{0, 1}, {-1, 1}, {-inf, inf}, {0, inf}, {0, 0}, {-5, 5}}
	for i, shape := range shapes {
		for k, b := range bounds {
			f := []env.Field{{Name: "first", Shape: []int{2}, Low: b[0], High: b[1]},
				{Name: strings.Repeat("n", 30), Shape: shape, Low: b[0], High: b[1], Unit: "m"},
				{Name: "last", Shape: shapes[(i+k)%len(shapes)]}}
			n := f[0].Len() + f[1].Len() + f[2].Len()
			v := make([]float32, n)
			for j := range v {
				v[j] = float32(j%7-3) * 0.4
			}
			c := canvas(t)
			r := image.Rect(Margin, HeadHeight+6, env.FrameWidth-Margin, env.FrameHeight-6)
			c.Fields(r, f, v)
			outside(t, c, image.Rect(0, r.Min.Y, env.FrameWidth, env.FrameHeight))
			if pixels(c, whole, Ink) == 0 {
				t.Errorf("%v in %v: no text", shape, b)
			}
		}
	}
	many := make([]env.Field, 200)
	for i := range many {
		many[i] = env.Field{Name: "f", Shape: []int{1 + i%12}, High: 1}
	}
	n := 0
	for _, f := range many {
		n += f.Len()
	}
	canvas(t).Fields(area, many, make([]float32, n))
}

// One value among very many still shows, because a cell shows the largest of its values.
func TestALoneValueShows(t *testing.T) {
	f := []env.Field{{Name: "f", Shape: []int{1_000_000}, High: 1}}
	v := make([]float32, 1_000_000)
	c := canvas(t)
	c.Fields(whole, f, v)
	if pixels(c, whole, scaleHigh) != 0 {
		t.Fatal("there is a dark cell")
	}
	v[777_777] = 1
	c.Fields(whole, f, v)
	if pixels(c, whole, scaleHigh) == 0 {
		t.Error("there is no dark cell")
	}
}

func TestStepsAreRound(t *testing.T) {
	for _, x := range []struct {
		length float64
		n      int
		want   float64
	}{{100, 10, 10}, {100, 9, 20}, {7, 4, 2}, {0.03, 5, 0.01}, {1e9, 3, 5e8}, {0, 3, 1}, {math.Inf(1), 3, 1},
		{math.NaN(), 3, 1}} {
		if got := Step(x.length, x.n); math.Abs(got-x.want) > 1e-9*x.want {
			t.Errorf("Step(%v, %d) = %v, want %v", x.length, x.n, got, x.want)
		}
	}
}

// A picture of ten thousand GPUs takes little memory besides the canvas.
func TestACrowdedBoardIsCheap(t *testing.T) {
	b := Board{Title: "t", Cluster: *machines(10, 125, 8), Runs: 5000, Waits: 100_000}
	for i := range MostRows {
		b.Queue = append(b.Queue, Waiting{Name: "job", GPUs: 8, Estimate: time.Hour, Colour: Colour(i)})
	}
	for i := range MostKeys {
		b.Running = append(b.Running, Job("job", 8, Colour(i)))
	}
	dst := env.NewFrame()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const times = 20
	for range times {
		c, err := On(dst)
		if err != nil {
			t.Fatal(err)
		}
		c.Board(&b)
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / times; n > 256<<10 {
		t.Errorf("a picture allocates %d bytes, want at most 256 KiB", n)
	}
}
