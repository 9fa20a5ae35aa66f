package sim

// finishes is a binary heap of the running jobs, ordered by time of finish, then by sequence number. It is typed and
// holds values, because container/heap would box every entry. Each job knows its index (jobState.heap), so an entry
// can be moved or removed.
type finish struct {
	at  int64 // ns
	seq int64
	job Job
}

func (a *finish) less(b *finish) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (s *Simulator) heapUp(i int) {
	h, e := s.finishes, s.finishes[i]
	for i > 0 {
		p := (i - 1) / 2
		if !e.less(&h[p]) {
			break
		}
		h[i] = h[p]
		s.jobs[h[i].job].heap = int32(i)
		i = p
	}
	h[i] = e
	s.jobs[e.job].heap = int32(i)
}

func (s *Simulator) heapDown(i int) {
	h, e := s.finishes, s.finishes[i]
	for {
		k := 2*i + 1
		if k >= len(h) {
			break
		}
		if k+1 < len(h) && h[k+1].less(&h[k]) {
			k++
		}
		if !h[k].less(&e) {
			break
		}
		h[i] = h[k]
		s.jobs[h[i].job].heap = int32(i)
		i = k
	}
	h[i] = e
	s.jobs[e.job].heap = int32(i)
}

func (s *Simulator) heapPush(f finish) {
	s.finishes = append(s.finishes, f)
	s.heapUp(len(s.finishes) - 1)
}

func (s *Simulator) heapRemove(i int) {
	last := len(s.finishes) - 1
	moved := s.finishes[last]
	s.finishes = s.finishes[:last]
	if i == last {
		return
	}
	s.finishes[i] = moved
	s.jobs[moved.job].heap = int32(i)
	s.heapDown(i)
	s.heapUp(int(s.jobs[moved.job].heap))
}
