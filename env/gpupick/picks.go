package gpupick

import (
	"fmt"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Picks are the GPUs that are being picked for one job: which of the others are legal, and what an agent sees. The
// environment has one; with another, an agent of the environment can pick GPUs wherever jobs start. Not safe for
// concurrent use.
type Picks struct {
	cfg  *Config
	est  sim.Estimates
	seen *encode.Forecasts // nil = they are not shown

	view   *sim.View
	job    sim.Job // -1 = none
	n      int     // GPUs that it wants
	picked []cluster.GPU
	taken  []bool  // by GPU
	onNode []int32 // GPUs picked, by node and by rack
	onRack []int32
	nodes  int // with picked GPUs

	// What does not change while GPUs are picked.
	busy   []float32 // by GPU
	ends   []float32 // mean of busy over a node's GPUs that are
	room   []int32   // usable GPUs, by node and by rack
	inRack []int32
	sizes  []int32 // GPUs of a rack
}

// NewPicks returns picks in a cluster like c, with the observations of cfg. What is known of run times is that of an
// episode whose seed is seed. Forecasts must not be shown.
func NewPicks(cfg *Config, c *cluster.Cluster, seed uint64) (*Picks, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := suits(c); err != nil {
		return nil, err
	}
	est := cfg.Estimates
	if cfg.Forecast.Shown(est) {
		return nil,
			fmt.Errorf(
				"%s: got forecast %s with estimates %s, want off: picks see no arrivals, from which forecasts are learned", V1,
				cfg.Forecast, cfg.Estimates)
	}
	est.Seed = seed
	return newPicks(cfg, est, c), nil
}

func newPicks(cfg *Config, est sim.Estimates, c *cluster.Cluster) *Picks {
	gpus, nodes, racks := c.GPUs(), c.Nodes(), c.Racks()
	p := &Picks{
		cfg: cfg, est: est, job: -1, taken: make([]bool, gpus), onNode: make([]int32, nodes), onRack: make([]int32, racks),
		busy: make([]float32,
			gpus), ends: make([]float32, nodes), room: make([]int32, nodes), inRack: make([]int32, racks), sizes: make([]int32,
			racks),
	}
	for n := range nodes {
		from, to := c.NodeGPUs(n)
		p.sizes[c.RackOf(n)] += int32(to - from)
	}
	return p
}

// Begin forgets what has been picked and turns to job j of v, -1 = none.
func (p *Picks) Begin(v *sim.View, j sim.Job) {
	p.picked = p.picked[:0]
	clear(p.taken)
	clear(p.onNode)
	p.nodes = 0
	clear(p.onRack)
	p.view, p.job = v, j
	c := v.Cluster()
	clear(p.busy)
	for _, j := range v.Running() {
		x := p.left(j)
		for _, g := range v.GPUs(j) {
			p.busy[g] = max(p.busy[g], x) // a shared GPU shows its longest job
		}
	}
	if j < 0 {
		return
	}
	r := v.Request(j)
	if p.n = r.GPUs; !p.cfg.Table {
		return
	}
	clear(p.inRack)
	for n := range p.room {
		p.room[n] = int32(c.Room(n, r))
		p.inRack[c.RackOf(n)] += p.room[n]
		from, to := c.NodeGPUs(n)
		sum, of := float32(0), float32(0)
		for g := from; g < to; g++ {
			if p.busy[g] > 0 {
				sum, of = sum+p.busy[g], of+1
			}
		}
		p.ends[n] = sum / max(1, of)
	}
}

// left returns what observations show of the time that is left of a running job.
func (p *Picks) left(j sim.Job) float32 {
	left := float64(p.view.Ran(j))
	if p.est.Mode != sim.EstimateNone {
		left = float64(p.est.Left(p.view, j))
	}
	if p.cfg.TimeAxis == "linear" {
		return float32(min(1, max(0, left/float64(p.cfg.Row)/50)))
	}
	return encode.L(left)
}

// Legal reports whether g can be picked next.
func (p *Picks) Legal(g cluster.GPU) bool {
	c, r := p.view.Cluster(), p.view.Request(p.job)
	if p.taken[g] || c.GPUFree(g) < r.Milli {
		return false
	}
	return p.takes(c, r, c.NodeOf(g))
}

// takes reports whether the job can have another GPU of node n, if one is free: by types, cores and memory and, if it
// takes the same number of GPUs on each of its nodes, by these.
func (p *Picks) takes(c *cluster.Cluster, r *cluster.Request, n int) bool {
	picked := int(p.onNode[n])
	switch {
	case r.Each == 0:
		return c.Room(n, r) > picked
	case picked > 0:
		return picked < r.Each
	}
	return p.nodes < r.GPUs/r.Each && c.Room(n, r) > 0
}

// Pick picks g, which must be legal. done says that the job has all its GPUs.
func (p *Picks) Pick(g cluster.GPU) (done bool) {
	c := p.view.Cluster()
	n := c.NodeOf(g)
	p.picked = append(p.picked, g)
	p.taken[g] = true
	if p.onNode[n] == 0 {
		p.nodes++
	}
	p.onNode[n]++
	p.onRack[c.RackOf(n)]++
	return len(p.picked) == p.n
}

// GPUs returns the GPUs picked, in order. They belong to p.
func (p *Picks) GPUs() []cluster.GPU { return p.picked }

// Mask marks the legal actions; that of idling is not.
func (p *Picks) Mask(dst []bool) {
	clear(dst)
	if p.job < 0 {
		return
	}
	c, r := p.view.Cluster(), p.view.Request(p.job)
	for n := range p.onNode {
		if !p.takes(c, r, n) {
			continue
		}
		for g, to := c.NodeGPUs(n); g < to; g++ {
			dst[g] = !p.taken[g] && c.GPUFree(g) >= r.Milli
		}
	}
}

// Fields returns the fields of the observation.
func (p *Picks) Fields() []env.Field {
	gpus, job := len(p.taken), 2
	doc := "the job whose GPUs are picked: L(e); n/M"
	if p.seen != nil {
		job += encode.ForecastLen
		doc += "; " + encode.ForecastDoc
	}
	left := "L(remaining)"
	if p.cfg.TimeAxis == "linear" {
		left = "clip(rows/50, 0, 1)"
	}
	of := env.Field{Name: "job", Shape: []int{job}, High: 1, Unit: "fraction", Doc: doc}
	if p.cfg.Table {
		return []env.Field{of,
			{Name: "table", Shape: []int{gpus, rowLen}, High: 1, Unit: "fraction",
				Doc: "by GPU: can be picked; picked; remaining time of its job: " + left +
					"; of its machine and of its rack each: usable GPUs/all, those picked for this job/n, min(1, usable/missing), " +
					"usable beyond the missing/all; " +
					"what its pick adds to the communication cost/0.775; mean remaining time on its machine"}}
	}
	return []env.Field{
		{Name: "busy", Shape: []int{gpus}, High: 1, Unit: "fraction",
			Doc: "remaining time of the job on each GPU, by rack, machine and index: " + left},
		of,
		{Name: "picked", Shape: []int{gpus}, High: 1, Unit: "one-hot", Doc: "1 for the GPUs picked for it so far"},
	}
}

// The columns of field table. Machine and rack have four each.
const (
	rowFree = iota
	rowPicked
	rowBusy
	rowMachine
	rowRack  = rowMachine + 4
	rowAdds  = rowRack + 4
	rowEnds  = rowAdds + 1
	rowLen   = rowEnds + 1
	mostAdds = 0.5 + 0.25 + 0.025 // of a GPU in a new rack
)

// Encode writes the observation.
func (p *Picks) Encode(dst []float32) {
	clear(dst)
	gpus, job := len(p.taken), 2
	if p.seen != nil {
		job += encode.ForecastLen
	}
	if p.cfg.Table {
		p.encodeJob(dst[:job])
		p.encodeTable(dst[job:])
		return
	}
	copy(dst, p.busy)
	p.encodeJob(dst[gpus : gpus+job])
	picked := dst[gpus+job:]
	for _, g := range p.picked {
		picked[g] = 1
	}
}

func (p *Picks) encodeJob(dst []float32) {
	if p.job < 0 {
		return
	}
	t := p.view.Trace(p.job)
	known := float64(p.view.Now() - t.Submit)
	if p.est.Mode != sim.EstimateNone {
		known = float64(p.est.Of(p.view, p.job))
	}
	dst[0] = encode.L(known)
	dst[1] = float32(min(1, float64(p.n)/float64(p.cfg.MaxGPUs)))
	if p.seen != nil {
		p.seen.Count(p.view)
		p.seen.Encode(dst[2:], p.view, p.job)
	}
}

func (p *Picks) encodeTable(dst []float32) {
	c := p.view.Cluster()
	missing := p.n - len(p.picked)
	for n := range p.room {
		from, to := c.NodeGPUs(n)
		k := c.RackOf(n)
		for g := from; g < to; g++ {
			row := dst[int(g)*rowLen : int(g+1)*rowLen]
			row[rowBusy], row[rowEnds] = p.busy[g], p.ends[n]
			if p.taken[g] {
				row[rowPicked] = 1
			}
			if p.job < 0 {
				continue
			}
			if p.Legal(g) {
				row[rowFree] = 1
			}
			p.encodePlace(row[rowMachine:], p.room[n]-p.onNode[n], p.onNode[n], int32(to-from), missing)
			p.encodePlace(row[rowRack:], p.inRack[k]-p.onRack[k], p.onRack[k], p.sizes[k], missing)
			adds := 0.025
			if p.onNode[n] == 0 {
				adds += 0.25
			}
			if p.onRack[k] == 0 {
				adds += 0.5
			}
			row[rowAdds] = float32(adds / mostAdds)
		}
	}
}

// encodePlace writes the numbers of a machine or rack of size GPUs, of which room are usable and taken are picked.
func (p *Picks) encodePlace(dst []float32, room, taken, size int32, missing int) {
	dst[0] = float32(room) / float32(size)
	dst[1] = float32(taken) / float32(max(1, p.n))
	if missing > 0 {
		dst[2] = min(1, float32(room)/float32(missing))
	}
	dst[3] = max(0, float32(int(room)-missing)) / float32(size)
}
