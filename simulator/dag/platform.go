package dag

import (
	"fmt"
	"math"
	"slices"
)

// Processor is one place where a task can run: a GPU.
type Processor struct {
	ID    string
	Speed float64 // work per second
	Type  string  // "" = no type that a task could ask for
}

// Platform is a set of processors and the bandwidth between any two. It is read-only after NewPlatform and safe for
// concurrent use.
type Platform struct {
	procs  []Processor
	scalar float64   // bytes per second between any two, 0 = see matrix and tiers
	matrix []float64 // nil if scalar or tiers apply, or if no bandwidth is known
	tiers  []Tier    // nil if scalar or matrix apply, or if no bandwidth is known
	row    int

	slowest, fastest []float64 // extreme bandwidths of each sender to other processors, if there is a matrix or are tiers
}

// Tier is one level of a platform whose processors stand in groups within groups, as GPUs in machines and machines in
// racks. Group k of a tier holds the processors k·Size to (k+1)·Size−1.
type Tier struct {
	Size      int     // processors of a group; 0 = all processors, only at the last tier
	Bandwidth float64 // bytes per second between two processors of a group that share no group of an earlier tier
}

// NewPlatform checks the processors and returns the platform. bandwidth is the bytes per second between any two
// different ones; 0 = unknown, which works only for graphs whose edges carry nothing.
func NewPlatform(procs []Processor, bandwidth float64) (*Platform, error) {
	p := &Platform{procs: procs, scalar: bandwidth, row: len(procs)}
	if err := p.checkProcs(); err != nil {
		return nil, err
	}
	if len(procs) > 1 && (bandwidth < 0 || math.IsNaN(bandwidth) || math.IsInf(bandwidth, 0)) {
		return nil, fmt.Errorf("bandwidth: got %v, want a number of bytes per second above 0", bandwidth)
	}
	if len(procs) == 1 {
		p.scalar = 0
	}
	return p, nil
}

// NewLinkedPlatform returns a platform with its own bandwidth for every ordered pair: row = sender, column =
// receiver. The diagonal is ignored. NaN elsewhere means that a bandwidth is missing, which is an error.
func NewLinkedPlatform(procs []Processor, matrix [][]float64) (*Platform, error) {
	if len(procs) > 0 && len(matrix) != len(procs) {
		p := &Platform{procs: procs}
		if err := p.checkProcs(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("bandwidth: got %d rows, want one for each of %d processors", len(matrix), len(procs))
	}
	return NewPlatformOfRows(procs, func(g int) []float64 { return matrix[g] })
}

// NewPlatformOfRows is NewLinkedPlatform for a matrix of which only one row at a time exists elsewhere: rowOf returns
// the bandwidths from sender g and is called once for every sender, in order. The platform copies them.
func NewPlatformOfRows(procs []Processor, rowOf func(g int) []float64) (*Platform, error) {
	m := len(procs)
	p := &Platform{procs: procs, row: m}
	if err := p.checkProcs(); err != nil {
		return nil, err
	}
	p.matrix, p.slowest, p.fastest = make([]float64, m*m), make([]float64, m), make([]float64, m)
	for g := range m {
		row := rowOf(g)
		p.slowest[g] = math.Inf(1)
		if len(row) != m {
			return nil, fmt.Errorf("bandwidth[%d]: got %d numbers, want one for each of %d processors", g, len(row), m)
		}
		for h, b := range row {
			switch {
			case g == h:
				b = math.Inf(1)
			case math.IsNaN(b):
				return nil, fmt.Errorf("bandwidth[%d][%d]: none is given from processor %s to %s, want a number above 0", g, h,
					procs[g].ID, procs[h].ID)
			case !(b > 0) || math.IsInf(b, 0):
				return nil, fmt.Errorf("bandwidth[%d][%d] (processor %s to %s): got %v, want a number above 0", g, h, procs[g].ID,
					procs[h].ID, b)
			}
			p.matrix[g*m+h] = b
			if g != h {
				p.slowest[g], p.fastest[g] = min(p.slowest[g], b), max(p.fastest[g], b)
			}
		}
	}
	return p, nil
}

// NewTieredPlatform returns a platform whose bandwidths depend only on the smallest group that two processors share.
// Sizes grow from tier to tier, each a multiple of the one before, and the last tier holds all processors. It equals
// the linked platform with the same bandwidths, but takes no memory for pairs.
func NewTieredPlatform(procs []Processor, tiers []Tier) (*Platform, error) {
	m := len(procs)
	p := &Platform{procs: procs, row: m, tiers: slices.Clone(tiers)}
	if err := p.checkProcs(); err != nil {
		return nil, err
	}
	if len(tiers) == 0 {
		return nil, fmt.Errorf("tiers: got none, want at least the one of all processors")
	}
	for k, t := range tiers {
		switch last := k == len(tiers)-1; {
		case !(t.Bandwidth > 0) || math.IsInf(t.Bandwidth, 0):
			return nil, fmt.Errorf("tiers[%d].bandwidth: got %v, want a number of bytes per second above 0", k, t.Bandwidth)
		case last != (t.Size == 0):
			return nil, fmt.Errorf("tiers[%d].size: got %d, want 0 at the last tier, and only there", k, t.Size)
		case !last && (t.Size < 1 || k > 0 && t.Size%tiers[k-1].Size != 0):
			return nil, fmt.Errorf("tiers[%d].size: got %d, want a multiple of the size of the tier before", k, t.Size)
		}
	}
	p.tiers[len(tiers)-1].Size = m
	p.slowest, p.fastest = make([]float64, m), make([]float64, m)
	for g := range m {
		p.slowest[g] = math.Inf(1)
		inner := 1
		for _, t := range p.tiers {
			from, to := p.group(g, t.Size)
			if to-from > inner { // it holds processors that no earlier group of g holds
				p.slowest[g], p.fastest[g] = min(p.slowest[g], t.Bandwidth), max(p.fastest[g], t.Bandwidth)
			}
			inner = to - from
		}
	}
	return p, nil
}

// group returns the processors from, …, to−1 of g's group of the given size.
func (p *Platform) group(g, size int) (from, to int) {
	from = g / size * size
	return from, min(from+size, p.row)
}

// tier returns the bandwidth between different processors g and h.
func (p *Platform) tier(g, h int) float64 {
	for _, t := range p.tiers {
		if g/t.Size == h/t.Size {
			return t.Bandwidth
		}
	}
	return 0 // the last tier holds all
}

func (p *Platform) checkProcs() error {
	if len(p.procs) == 0 {
		return fmt.Errorf("processors: got none, want at least one")
	}
	seen := make(map[string]int, len(p.procs))
	for g, c := range p.procs {
		if k, twice := seen[c.ID]; twice {
			return fmt.Errorf("processors[%d].id: got %q, which is that of processors[%d], want an id of its own", g, c.ID, k)
		}
		seen[c.ID] = g
		if !(c.Speed > 0) || math.IsInf(c.Speed, 0) {
			return fmt.Errorf("processors[%d] (%s): speed: got %v, want a number above 0", g, c.ID, c.Speed)
		}
	}
	return nil
}

// Len returns the number of processors.
func (p *Platform) Len() int { return len(p.procs) }

// Processor returns the processor of index g. It belongs to the platform.
func (p *Platform) Processor(g int) *Processor { return &p.procs[g] }

// Linked reports whether pairs have their own bandwidths.
func (p *Platform) Linked() bool { return p.matrix != nil || p.tiers != nil }

// known reports whether bandwidths are known.
func (p *Platform) known() bool { return p.row == 1 || p.scalar > 0 || p.Linked() }

// Bandwidth returns the bytes per second from processor g to h; infinity if they are the same or no bandwidth is
// known.
func (p *Platform) Bandwidth(g, h int) float64 {
	switch {
	case g == h || !p.known():
		return math.Inf(1)
	case p.matrix != nil:
		return p.matrix[g*p.row+h]
	case p.tiers != nil:
		return p.tier(g, h)
	}
	return p.scalar
}

// fill fills row with the bandwidths from processor g to the others, if there are tiers.
func (p *Platform) fill(row []float64, g int) {
	for _, t := range slices.Backward(p.tiers) { // from the outside in
		from, to := p.group(g, t.Size)
		for h := from; h < to; h++ {
			row[h] = t.Bandwidth
		}
	}
}

// extremes returns the lowest and the highest bandwidth from processor g to another one.
func (p *Platform) extremes(g int32) (slowest, fastest float64) {
	if p.Linked() {
		return p.slowest[g], p.fastest[g]
	}
	return p.scalar, p.scalar
}

// RankMean is how planners estimate the cost of an edge before they know where its tasks will run. Programs called
// HEFT read "mean communication cost" in different ways, and makespans depend on it.
type RankMean string

// The means, over pairs of processors in which the order counts.
const (
	Pairs RankMean = "pairs" // bytes × mean of 1/bandwidth over all pairs of different processors
	// bytes / mean bandwidth over the same pairs: the literal formula of the 2002 paper
	MeanBandwidth RankMean = "mean-bandwidth"
	// bytes × mean of 1/bandwidth where pairs of a processor with itself count as 0
	SelfPairs RankMean = "self-pairs"
)

// RankMeans returns the names of all rules; the first is the default.
func RankMeans() []string { return []string{string(Pairs), string(MeanBandwidth), string(SelfPairs)} }

// MeanCost is the mean cost of an edge: Of(bytes) seconds.
type MeanCost struct{ factor, divisor float64 }

// Of returns the mean cost of bytes, in seconds.
func (c MeanCost) Of(bytes float64) float64 { return bytes * c.factor / c.divisor }

// MeanCost returns the mean cost under the rule mean; "" = Pairs.
func (p *Platform) MeanCost(mean RankMean) MeanCost {
	m := p.row
	if m == 1 || !p.known() {
		return MeanCost{0, 1}
	}
	inverse, sum := 0.0, 0.0
	var row []float64 // of tiers
	if p.tiers != nil {
		row = make([]float64, m)
	}
	for g := range m {
		if p.matrix != nil {
			row = p.matrix[g*m : (g+1)*m]
		} else {
			p.fill(row, g)
		}
		for h := range m {
			if g == h {
				continue
			}
			b := p.scalar
			if row != nil {
				b = row[h]
			}
			inverse += 1 / b
			sum += b
		}
	}
	pairs := float64(m) * float64(m-1)
	switch mean {
	case MeanBandwidth:
		return MeanCost{1, sum / pairs}
	case SelfPairs:
		return MeanCost{inverse / (float64(m) * float64(m)), 1}
	}
	return MeanCost{inverse / pairs, 1}
}
