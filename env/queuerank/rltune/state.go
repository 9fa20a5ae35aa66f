package rltune

// Features is how many numbers an observation has of a job.
const Features = 7

// Cut is the largest number of a row, but for the last.
const Cut = 1 - 1e-5

// Padding is the row of an empty slot.
var Padding = [Features]float64{0, 1, 1, 1, 1, 1, 0}

// State is what the row of a job says of its pool.
type State struct {
	PerNode  float64 // by which requests are divided
	Free     float64 // GPUs
	Capacity float64 // GPUs
	Demand   float64 // of the visible jobs of the pool
	Partial  float64 // share of partial nodes
}

// Count sets the state's free GPUs and share of partial nodes by the free GPUs of the nodes of p; all = of all nodes,
// not only of those with a free GPU.
func (s *State) Count(p *Pool, free []int32, all bool) {
	partial, some, sum, at := 0, 0, 0, 0
	for i := range p.Blocks {
		b := &p.Blocks[i]
		for range b.Nodes {
			left := int(free[at])
			at++
			sum += left
			if left > 0 {
				some++
				if left < b.Each {
					partial++
				}
			}
		}
	}
	if all {
		some = p.nodes
	}
	s.Free, s.Capacity, s.Partial = float64(sum), float64(p.gpus), 0
	if some > 0 {
		s.Partial = float64(partial) / float64(some)
	}
}

// Row fills the row of a job that has waited for wait seconds and asks for gpus. ways and fits are those of
// Finder.Ways. The numbers are: the wait by 12 hours; the request by the GPUs of a node; the request by the free GPUs
// and by the capacity; what is free less what the visible jobs ask for, from −1 to 1 capacity as 0 to 1; the share of
// partial nodes; a third of the ways; and whether it can start: 1e-5 no, 1 − 1e-5 in one way, half as much again in
// several.
func (s *State) Row(wait, gpus float64, ways int, fits bool, row []float64) {
	row[0] = min(wait/43200, Cut)
	row[1] = min(gpus/s.PerNode, Cut)
	row[2] = min(gpus/max(s.Free, 1e-5)/s.Capacity, Cut)
	row[3] = max(0, min((s.Free-s.Demand+s.Capacity)/(2*s.Capacity+1e-5), Cut))
	row[4] = s.Partial
	row[5], row[6] = 1e-5, 1e-5
	if ways > 0 {
		row[5] = min(float64(ways)/3, Cut)
	}
	switch {
	case fits && ways > 1:
		row[6] = 1.5 * Cut
	case fits:
		row[6] = Cut
	}
}

// Ways counts ways as observations do: 2 if there are several of tier 1, 1 for one, and if wide, 1 more if there are
// any of tier 2. fits says whether there is one of tier 1, without which no job starts.
func (f *Finder) Ways(p *Pool, free []int32, gpus int, wide bool) (ways int, fits bool) {
	one, two := f.count(p, free, gpus, 2, wide)
	return one + min(two, 1), one > 0
}
