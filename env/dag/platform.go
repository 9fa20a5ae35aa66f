package dag

import (
	"fmt"
	"math"
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
	scalar float64   // bytes per second between any two, 0 = see matrix
	matrix []float64 // nil if scalar applies, or if no bandwidth is known
	row    int

	slowest, fastest []float64 // extreme bandwidths of each sender to other processors, if there is a matrix
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
	m := len(procs)
	p := &Platform{procs: procs, row: m}
	if err := p.checkProcs(); err != nil {
		return nil, err
	}
	if len(matrix) != m {
		return nil, fmt.Errorf("bandwidth: got %d rows, want one for each of %d processors", len(matrix), m)
	}
	p.matrix, p.slowest, p.fastest = make([]float64, m*m), make([]float64, m), make([]float64, m)
	for g, row := range matrix {
		p.slowest[g] = math.Inf(1)
		if len(row) != m {
			return nil, fmt.Errorf("bandwidth[%d]: got %d numbers, want one for each of %d processors", g, len(row), m)
		}
		for h, b := range row {
			switch {
			case g == h:
				b = math.Inf(1)
			case math.IsNaN(b):
				return nil, fmt.Errorf("bandwidth[%d][%d]: none is given from processor %s to %s, want a number above 0", g, h, procs[g].ID, procs[h].ID)
			case !(b > 0) || math.IsInf(b, 0):
				return nil, fmt.Errorf("bandwidth[%d][%d] (processor %s to %s): got %v, want a number above 0", g, h, procs[g].ID, procs[h].ID, b)
			}
			p.matrix[g*m+h] = b
			if g != h {
				p.slowest[g], p.fastest[g] = min(p.slowest[g], b), max(p.fastest[g], b)
			}
		}
	}
	return p, nil
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
func (p *Platform) Linked() bool { return p.matrix != nil }

// known reports whether bandwidths are known.
func (p *Platform) known() bool { return p.row == 1 || p.scalar > 0 || p.matrix != nil }

// Bandwidth returns the bytes per second from processor g to h; infinity if they are the same or no bandwidth is
// known.
func (p *Platform) Bandwidth(g, h int) float64 {
	switch {
	case g == h || !p.known():
		return math.Inf(1)
	case p.matrix != nil:
		return p.matrix[g*p.row+h]
	}
	return p.scalar
}

// extremes returns the lowest and the highest bandwidth from processor g to another one.
func (p *Platform) extremes(g int32) (slowest, fastest float64) {
	if p.matrix != nil {
		return p.slowest[g], p.fastest[g]
	}
	return p.scalar, p.scalar
}

// RankMean is how planners estimate the cost of an edge before they know where its tasks will run. Programs called
// HEFT read "mean communication cost" in different ways, and makespans depend on it.
type RankMean string

// The means, over pairs of processors in which the order counts.
const (
	Pairs         RankMean = "pairs"          // bytes × mean of 1/bandwidth over all pairs of different processors
	MeanBandwidth RankMean = "mean-bandwidth" // bytes / mean bandwidth over the same pairs: the literal formula of the 2002 paper
	SelfPairs     RankMean = "self-pairs"     // bytes × mean of 1/bandwidth where pairs of a processor with itself count as 0
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
	for g := range m {
		for h := range m {
			if g != h {
				inverse += 1 / p.Bandwidth(g, h)
				sum += p.Bandwidth(g, h)
			}
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
