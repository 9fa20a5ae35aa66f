package workerplace

// Sharing tells apart in what company a worker is: the type of its job, and which types of other jobs are on its
// server.
type Sharing struct {
	Type   int
	Beside uint8 // bit k: a job of type k
}

// Sharings is the number of different ones.
const Sharings = Types << Types

// Index is a number in [0, Sharings).
func (s Sharing) Index() int { return s.Type<<Types | int(s.Beside) }

// SharingOf is the company of a job's workers on server m in p.
func (p *Placement) SharingOf(job, m int) Sharing {
	s := Sharing{Type: p.Jobs[job].Type}
	for i := range p.Jobs {
		if i != job && p.Jobs[i].On[m] > 0 {
			s.Beside |= 1 << p.Jobs[i].Type
		}
	}
	return s
}

// Closes says whether a is the action that closes the interval.
func (e *Env) Closes(a int32) bool { return int(a) == len(e.mask)-1 }

// Sharing is the company that action a, which places a worker, would put it in.
func (e *Env) Sharing(a int32) Sharing {
	j := &e.jobs[e.waiting[int(a)/e.cfg.Servers]]
	m := int(a) % e.cfg.Servers
	s := Sharing{Type: j.kind}
	for _, id := range e.running {
		if o := &e.jobs[id]; o.on[m] > 0 {
			s.Beside |= 1 << o.kind
		}
	}
	return s
}

// After fills p with what runs and the gang of action a, which places a worker, as it would then stand: as if its other
// workers were not to come. on is the memory of that gang's row, one number a server.
func (e *Env) After(a int32, p *Placement, on []int32) {
	p.Servers, p.Jobs = e.cfg.Servers, p.Jobs[:0]
	for _, id := range e.running {
		j := &e.jobs[id]
		p.Jobs = append(p.Jobs, Placed{Job: int(id), Type: j.kind, Workers: j.workers, On: j.on})
	}
	id := e.waiting[int(a)/e.cfg.Servers]
	j := &e.jobs[id]
	copy(on, j.on)
	on[int(a)%e.cfg.Servers]++
	p.Jobs = append(p.Jobs, Placed{Job: int(id), Type: j.kind, Workers: j.placed + 1, On: on})
}
