package assess

import (
	"math"
	"time"

	"clustergym/internal/statistic"
	"clustergym/ops/incumbent"
)

// binCount is the number of equal stretches of time whose sums of waits are compared; blocks are made of them.
const binCount = 480

// LeastBlocks is the number of blocks of time below which no gain is believed. A verdict takes statistic.MinUnits.
const LeastBlocks = 5

// mostTimes is how many autocorrelation times of the queue a block is long.
const mostTimes = 5

// bins cut the time in which the counted jobs arrive.
type bins struct {
	from   time.Duration
	width  time.Duration
	of     []int // positions of the counted jobs
	bin    []int // of each of them
	length int   // bins of a block
	blocks int
}

// newBins counts the jobs of both halves. A block is five autocorrelation times of the recorded queue long.
func newBins(p *incumbent.Past, h incumbent.Halves) *bins {
	b := &bins{from: h.Warm, width: max(time.Second, (p.End-h.Warm+binCount-1)/binCount)}
	b.of = append(append(b.of, h.First...), h.Second...)
	for _, i := range b.of {
		b.bin = append(b.bin, b.at(p.Jobs[i].Submit))
	}
	tau := statistic.AutocorrelationTime(b.queue(p))
	b.length = min(binCount, max(1, int(math.Ceil(mostTimes*tau))))
	b.blocks = binCount / b.length
	return b
}

func (b *bins) at(t time.Duration) int { return max(0, min(binCount-1, int((t-b.from)/b.width))) }

// queue returns the mean number of jobs that waited in each bin.
func (b *bins) queue(p *incumbent.Past) []float64 { return b.length0(p, p.Starts) }

// length0 returns the mean number of jobs that wait in each bin under starts.
func (b *bins) length0(p *incumbent.Past, starts []time.Duration) []float64 {
	q := make([]float64, binCount)
	for i, start := range starts {
		if start < 0 || start > p.End {
			start = p.End
		}
		for from := max(b.from, p.Jobs[i].Submit); from < start; {
			k := b.at(from)
			to := min(start, b.from+b.width*time.Duration(k+1))
			if to <= from {
				break
			}
			q[k] += (to - from).Seconds() / b.width.Seconds()
			from = to
		}
	}
	return q
}

// sums returns the sum of the counted jobs' waits in each bin.
func (b *bins) sums(w []float64) []float64 {
	s := make([]float64, binCount)
	for k, i := range b.of {
		s[b.bin[k]] += w[i]
	}
	return s
}

// compared is a comparison of two mean waits.
type compared struct {
	statistic.Replicated
	ratio float64 // its logarithm
	ci    *ci     // of ratio
}

// fewest is how many blocks an interval has at least. If the record has only one, two halves of it take its place: the
// interval shows how little is known, and nothing is believed because of it.
const fewest = 2

// compare compares waits a with waits b of the counted jobs. With fewer than ten blocks the interval is the jackknife t
// interval of whole blocks, which is wide, and there is no verdict.
func (b *bins) compare(name, base string, wa, wb []float64) *compared {
	sa, sb := b.sums(wa), b.sums(wb)
	c := &compared{Replicated: statistic.CompareBlocks(seed, name, base, "wait", sa, sb, b.length, false)}
	x := float64(c.Difference)
	c.ratio = math.Log1p(x / 100)
	switch {
	case c.CI95.Known():
		c.ci = &ci{math.Log1p(max(-100, c.CI95[0]) / 100), math.Log1p(c.CI95[1] / 100)}
	case !math.IsNaN(c.ratio) && !math.IsInf(c.ratio, 0):
		c.ci = fewBlocks(sa, sb, max(fewest, b.blocks), c.ratio)
	}
	return c
}

// fewBlocks returns the jackknife t interval of log(Σa/Σb) over so many whole blocks; nil where there is none.
func fewBlocks(a, b []float64, blocks int, ratio float64) *ci {
	ba, bb := make([]float64, blocks), make([]float64, blocks)
	sumA, sumB := 0.0, 0.0
	for i := range a {
		k := i * blocks / len(a)
		ba[k] += a[i]
		bb[k] += b[i]
		sumA += a[i]
		sumB += b[i]
	}
	without := make([]float64, blocks)
	for k := range without {
		if without[k] = math.Log((sumA - ba[k]) / (sumB - bb[k])); math.IsNaN(without[k]) || math.IsInf(without[k], 0) {
			return nil
		}
	}
	mean, squares := statistic.Mean(without), 0.0
	for _, x := range without {
		squares += (x - mean) * (x - mean)
	}
	n := float64(blocks)
	half := statistic.StudentQuantile(.975, n-1) * math.Sqrt(squares*(n-1)/n)
	return &ci{ratio - half, ratio + half}
}

// effect returns what waits mean against those of the best model. Its interval is that of blocks and, independent of
// it, that of the model's error: the square root of both squares.
func (a *assessor) effect(name string, waits []float64) (Effect, *compared) {
	return a.effectOf(a.bins, name, waits)
}

// effectOf is effect over the jobs of b: of all recorded waits, or of those of a half.
func (a *assessor) effectOf(b *bins, name string, waits []float64) (Effect, *compared) {
	e := Effect{Mean: incumbent.Mean(waits, b.of)}
	c := b.compare(name, a.out.Incumbent, waits, a.model)
	if math.IsNaN(c.ratio) || math.IsInf(c.ratio, 0) {
		return e, c
	}
	today := a.out.Recorded.Mean
	if b != a.bins {
		today = incumbent.Mean(a.real, b.of)
	}
	e.Percent, e.Of = percent(c.ratio), new(today*math.Exp(c.ratio))
	if c.ci != nil {
		low, high := c.ratio-c.ci[0], c.ci[1]-c.ratio
		wide := ci{c.ratio - math.Hypot(low, a.margin), c.ratio + math.Hypot(high, a.margin)}
		e.Blocks, e.CI = percents(*c.ci), percents(wide)
		e.Then = &ci{today * math.Exp(wide[0]), today * math.Exp(wide[1])}
	}
	return e, c
}

// percent is the difference in percent of a logarithm of a ratio.
func percent(ratio float64) *float64 { return new(100 * math.Expm1(ratio)) }

func percents(x ci) *ci { return &ci{*percent(x[0]), *percent(x[1])} }
