package lwf

import (
	"cmp"
	"slices"
)

// enqueue adds job i to the waiting jobs. Their keys do not change while they wait, so the queue stays sorted.
func (m *Machine) enqueue(i int32) {
	at := len(m.queue)
	for at > 0 && m.before(i, m.queue[at-1]) {
		at--
	}
	m.queue = slices.Insert(m.queue, at, i)
}

// before reports whether waiting job a comes before b, which arrived earlier.
func (m *Machine) before(a, b int32) bool {
	x, y := &m.load[a], &m.load[b]
	switch m.cfg.Order {
	case "ssf":
		return x.compute()*int64(x.Workers) < y.compute()*int64(y.Workers)
	case "sf":
		return x.Workers < y.Workers
	case "stf":
		return x.compute() < y.compute()
	}
	return cmp.Or(cmp.Compare(y.Workers, x.Workers), cmp.Compare(y.compute(), x.compute())) < 0
}

// place places waiting jobs and reports whether it placed any. A job that does not fit blocks nobody. The queue
// shortens while it is walked, so the job after a placed one is passed over until the next millisecond.
func (m *Machine) place() (placed bool) {
	for at := 0; at < len(m.queue); at++ {
		i := m.queue[at]
		if !m.choose(i) {
			continue
		}
		m.queue = slices.Delete(m.queue, at, at+1)
		placed = true
		m.begin(i)
	}
	return placed
}

// begin gives job i the chosen GPUs.
func (m *Machine) begin(i int32) {
	w, j := &m.load[i], &m.jobs[i]
	for k, g := range m.chosen {
		j.gpus, j.next = append(j.gpus, g), append(j.next, forward)
		if n := g / int32(m.cfg.GPUs); !slices.Contains(j.nodes, n) {
			j.nodes = append(j.nodes, n)
		}
		s := &m.gpus[g]
		s.free -= w.Memory
		s.seats = append(s.seats, placedWorker{i, int32(k)})
		s.ready++
	}
	if len(j.nodes) > 1 {
		j.once = w.Size * estimated
	}
	add := float64(w.compute()) + float64(j.once*float64(w.Iterations))
	for _, g := range j.gpus {
		m.gpus[g].load += add
	}
	m.running = append(m.running, i)
	j.rank = m.placements
	m.placements++
	m.stir(i)
	r := &m.report.Jobs[i]
	from := len(m.kept)
	m.kept = append(m.kept, j.gpus...)
	r.Placed, r.Nodes, r.GPUs = m.now, len(j.nodes), m.kept[from:len(m.kept):len(m.kept)]
	m.tell(Place, i, 0, 0)
}

// choose sets m.chosen to the GPUs of job i, in the order of its workers, and reports whether there are enough with
// room.
func (m *Machine) choose(i int32) bool {
	n, need := m.load[i].Workers, m.load[i].Memory
	m.chosen = m.chosen[:0]
	if m.k > 0 && n > m.k {
		return m.byNode(n, need)
	}
	for g := range m.gpus {
		if m.gpus[g].free >= need {
			m.chosen = append(m.chosen, int32(g))
		}
	}
	if len(m.chosen) < n {
		return false
	}
	switch {
	case m.k > 0:
		slices.SortFunc(m.chosen, m.lighter)
	case m.cfg.Place == "random" && m.given != nil:
		m.chosen = append(m.chosen[:0], m.given(int(i))...)
	case m.cfg.Place == "random":
		m.random.Shuffle(len(m.chosen), func(a, b int) { m.chosen[a], m.chosen[b] = m.chosen[b], m.chosen[a] })
	}
	m.chosen = m.chosen[:n]
	return true
}

// lighter orders GPUs by load, then by number.
func (m *Machine) lighter(a, b int32) int {
	return cmp.Or(cmp.Compare(m.gpus[a].load, m.gpus[b].load), cmp.Compare(a, b))
}

// byNode sorts the nodes by mean load and takes GPUs node by node. The list keeps its new order, also if there is no
// room, so ties depend on earlier placements.
func (m *Machine) byNode(n int, need int64) bool {
	for node := range m.mean {
		sum := 0.0
		for k := range m.cfg.GPUs {
			sum += m.gpus[node*m.cfg.GPUs+k].load
		}
		m.mean[node] = sum / float64(m.cfg.GPUs)
	}
	slices.SortStableFunc(m.order, func(a, b int32) int { return cmp.Compare(m.mean[a], m.mean[b]) })
	for _, node := range m.order {
		from := len(m.chosen)
		for k := range m.cfg.GPUs {
			if g := int32(int(node)*m.cfg.GPUs + k); m.gpus[g].free >= need {
				m.chosen = append(m.chosen, g)
			}
		}
		slices.SortFunc(m.chosen[from:], m.lighter)
		if len(m.chosen) >= n {
			m.chosen = m.chosen[:n]
			return true
		}
	}
	return false
}
