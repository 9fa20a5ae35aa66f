package cluster

import "math"

// tetris takes the node whose free capacity is best aligned with the gang's demand (Grandl et al., "Multi-resource
// packing for cluster schedulers", SIGCOMM 2014, §3.2): the greatest dot product of demand and free capacity over
// GPUs, cores and memory, each divided by the node's capacity. Resources that a node does not limit are left out. The
// best aligned of the nodes that hold the whole gang takes it, lowest number on ties; a larger gang takes all that the
// best aligned node has room for, and so on until the rest fits one node. Shares go to the fullest GPU that suffices.
type tetris struct {
	rooms rooms
	score []float64 // by node
}

func (p *tetris) place(c *Cluster, r *Request, dst []GPU) []GPU {
	room := p.rooms.count(c, r)
	if len(p.score) != len(room) {
		p.score = make([]float64, len(room))
	}
	for n, k := range room {
		if k > 0 {
			p.score[n] = c.alignment(n, r)
		}
	}
	for {
		need := r.GPUs - len(dst)
		fit, next := -1, -1
		for n, k := range room {
			if int(k) >= need && (fit < 0 || p.score[n] > p.score[fit]) {
				fit = n
			}
			if k > 0 && (next < 0 || p.score[n] > p.score[next]) {
				next = n
			}
		}
		if fit >= 0 {
			return c.takeFullest(fit, need, r, dst)
		}
		dst = c.takeFrom(next, int(room[next]), r, dst)
		room[next] = 0
	}
}

// alignment returns the dot product of the demand of one member (or of the job, if it has no GPUs) and node's free
// capacity, both in units of the node's capacity.
func (c *Cluster) alignment(node int, r *Request) float64 {
	sum := 0.0
	if gpus := c.gpuFree[c.gpu0[node]:c.gpu0[node+1]]; r.GPUs > 0 {
		free := int32(0)
		for _, f := range gpus {
			free += f
		}
		most := float64(1000 * len(gpus))
		sum += float64(r.Milli) / most * (float64(free) / most)
	}
	if most := c.nodeCPU[node]; most != math.MaxInt64 {
		sum += float64(r.CPUMilli) / float64(most) * (float64(c.freeCPU[node]) / float64(most))
	}
	if most := c.nodeMem[node]; most != math.MaxInt64 {
		sum += float64(r.MemBytes) / float64(most) * (float64(c.freeMem[node]) / float64(most))
	}
	return sum
}
