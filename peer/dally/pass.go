package dally

import "slices"

// pass offers the free GPUs to the candidates, in their order.
func (m *machine) pass() {
	m.report.Passes++
	if m.alive == 0 || m.cl.count == 0 {
		return
	}
	switch {
	case m.cfg.Policy == "gandiva":
		m.gandivaPass()
	case m.cfg.Variant == "waiting-only":
		m.waitingPass()
	default:
		m.publishedPass()
	}
	m.started()
}

// offer asks the placement rule for GPUs for job i and reports whether it got any.
func (m *machine) offer(i int32) bool {
	if int(m.jobs[i].n) > m.cl.count {
		return false
	}
	var gpus []int32
	if m.cfg.Policy == "dally" {
		gpus = m.dally(i, m.now)
	} else {
		gpus = m.tiresias(i)
	}
	if len(gpus) == 0 {
		return false
	}
	m.grant(i, gpus)
	return true
}

// waitingPass asks the waiting jobs.
func (m *machine) waitingPass() {
	kept := 0
	for k, i := range m.line {
		if m.cl.count == 0 {
			kept += copy(m.line[kept:], m.line[k:])
			break
		}
		if !m.offer(i) {
			m.line[kept] = i
			kept++
		}
	}
	m.line = m.line[:kept]
}

// publishedPass also asks running jobs that have no second gang yet.
func (m *machine) publishedPass() {
	m.asked = m.asked[:0]
	for _, i := range m.live {
		if i < 0 {
			continue
		}
		if !m.jobs[i].waiting && !m.eager {
			m.catchUp(i, m.now, true)
		}
		if len(m.jobs[i].nxt) == 0 {
			m.asked = append(m.asked, i)
		}
	}
	slices.SortFunc(m.asked, m.rank)
	for _, i := range m.asked {
		if m.cl.count == 0 {
			return
		}
		m.offer(i)
	}
}
