package rltune

// Block is consecutive nodes of equal size. Their positions in the pool follow those of the blocks before.
type Block struct {
	Nodes int
	Each  int // GPUs of a node
	Most  int // larger jobs do not run here; 0 = all do
}

// Pool is the nodes that a job can use.
type Pool struct {
	Blocks []Block

	gpus, nodes int
}

// GPUs returns the GPUs of the pool.
func (p *Pool) GPUs() int { return p.gpus }

// Nodes returns the number of its nodes.
func (p *Pool) Nodes() int { return p.nodes }

// NewPool returns a pool of nodes.
func NewPool(blocks ...Block) *Pool {
	p := &Pool{Blocks: blocks}
	for i := range blocks {
		b := &blocks[i]
		p.nodes += b.Nodes
		p.gpus += b.Nodes * b.Each
	}
	return p
}
