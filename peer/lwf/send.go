package lwf

import "slices"

// synchronise adds the jobs whose workers have just all ended backward to m.ready, in the order in which they may send.
// Their keys do not change until then. The iteration of a job on one node ends here, in no time.
func (m *Machine) synchronise() {
	if len(m.due) > 1 {
		slices.SortFunc(m.due, func(a, b int32) int { return m.jobs[a].rank - m.jobs[b].rank })
	}
	for _, i := range m.due {
		if len(m.jobs[i].nodes) == 1 {
			m.iterate(i)
			continue
		}
		at := len(m.ready)
		for at > 0 && m.sooner(i, m.ready[at-1]) {
			at--
		}
		m.ready = slices.Insert(m.ready, at, i)
	}
	m.due = m.due[:0]
}

// sooner reports whether ready job a comes before ready job b: by key, then by placement.
func (m *Machine) sooner(a, b int32) bool {
	if x, y := m.key(a), m.key(b); x != y {
		return x < y
	}
	return m.jobs[a].rank < m.jobs[b].rank
}

// send begins the transfers of ready jobs that may begin, and updates the rates of all. The next ready job already sees
// a transfer that has just begun. It reports whether the next millisecond can change something although nothing ends.
func (m *Machine) send() (again bool) {
	began := false
	refused := m.ready[:0]
	for _, i := range m.ready {
		j := &m.jobs[i]
		c := 0
		for _, n := range j.nodes {
			c = max(c, m.sends[n])
		}
		begins := c <= m.cfg.Threshold
		if m.cfg.Adaptive && c == 1 {
			begins = m.small(i)
			again = again || !begins && m.cfg.Question == "orig" // asked again, it moves the transfer again
		}
		if !begins {
			refused = append(refused, i)
			continue
		}
		began = true
		j.sending, j.sent, j.rate, j.links, j.last = true, 0, 0, 0, m.now
		m.sending = append(m.sending, i)
		for _, n := range j.nodes {
			m.sends[n]++
		}
		m.tell(SendStart, i, 0, 0)
	}
	m.ready = refused
	// A refused job may ask about a transfer that has only just begun.
	again = again || began && m.cfg.Adaptive && len(refused) > 0
	for _, i := range m.sending {
		m.update(i)
	}
	return again
}

// update sets the rate and the end of i's transfer from now on.
func (m *Machine) update(i int32) {
	j := &m.jobs[i]
	k := 0
	for _, n := range j.nodes {
		k = max(k, m.sends[n])
	}
	if k == j.links && m.cfg.Question != "orig" {
		return
	}
	size := m.load[i].Size
	j.sent += float64(float64(m.now-j.last) * j.rate)
	j.last, j.links = m.now, k
	j.rate = 1 / (float64(float64(k)*perMB) + float64(float64(k-1)*penalty))
	j.end = float64(m.now) + (size-j.sent)/j.rate
}

// small reports whether i, which would share each of its links with one transfer at most, is small enough beside what
// is left of it. The question goes to the first of its nodes with a transfer; pureall asks on all of them.
func (m *Machine) small(i int32) bool {
	small := true
	for _, n := range m.jobs[i].nodes {
		if m.sends[n] == 0 {
			continue
		}
		at := slices.IndexFunc(m.sending, func(o int32) bool { return slices.Contains(m.jobs[o].nodes, n) })
		small = small && m.left(m.sending[at]) >= worth*m.load[i].Size
		if m.cfg.Question != "pureall" {
			break
		}
	}
	return small
}

// left returns how many MB of o's transfer are left. As published, the question also moves the transfer by what it has
// sent in the last millisecond, which is then counted once more.
func (m *Machine) left(o int32) float64 {
	j := &m.jobs[o]
	if m.cfg.Question != "orig" {
		return m.load[o].Size - (j.sent + float64(float64(m.now-j.last)*j.rate))
	}
	m.report.Questions++
	if m.now > j.last {
		j.sent += float64(float64(m.now-1-j.last) * j.rate)
		j.last = m.now - 1
		j.sent += j.rate
		m.report.Moved += j.rate
	}
	return m.load[o].Size - j.sent
}
