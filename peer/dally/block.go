package dally

// startBlock lets job i run its next block on nxt.
func (m *machine) startBlock(i int32) {
	j := &m.jobs[i]
	j.cur, j.nxt = j.nxt, j.cur[:0]
	m.prepare(i)
	j.start = m.now
	m.seq++
	j.begin, j.seq = m.now, m.seq
	m.schedule(i)
}

// prepare computes what follows from cur.
func (m *machine) prepare(i int32) {
	j, w := &m.jobs[i], &m.load[i]
	n := float64(len(j.cur))
	j.factor = m.factorOf(i, j.cur)
	j.slow = w.Time / j.factor
	j.step = j.slow * m.cfg.Granularity
	j.ahead = j.comped / j.factor / n
	j.service = n * j.slow * m.cfg.Granularity
	j.eats = m.cfg.Granularity * n
	j.expire = m.cl.expire[j.cur[0]]
}

// schedule notes the end of the first block at which something happens. At the ends of earlier blocks the job keeps
// its GPUs and continues at once, which changes nothing for other jobs, so they are not events. catchUp brings the
// job up to date when its state is read.
func (m *machine) schedule(i int32) {
	j := &m.jobs[i]
	start, end := j.start, j.start+j.step
	if !m.eager {
		for rem := j.rem - j.eats; rem > 0 && end < j.expire && end+j.ahead <= j.expire; rem -= j.eats {
			start, end = end, end+j.step
		}
		m.queue.push(event{at: end, start: start, class: blockEnd, job: i})
		return
	}
	m.note(event{at: end, start: start, class: blockEnd, job: i})
}

// tied reports whether a comes before b, two ends of blocks that begin and end at the same times. Ends are handled in
// the order in which the blocks began. Blocks that begin at one time do so in the order in which the blocks before
// them ended; those that a pass began come last, in the pass's order.
func (m *machine) tied(a, b *event) bool {
	if m.eager {
		return a.seq < b.seq
	}
	x, y := &m.jobs[a.job], &m.jobs[b.job]
	s, t := m.starts(0, x, a.start), m.starts(1, y, b.start)
	for k := 1; ; k++ {
		switch p, q := len(s)-k, len(t)-k; {
		case p < 0 && q < 0:
			return x.seq < y.seq
		case p < 0 || q < 0:
			return q < 0
		case s[p] != t[q]:
			return s[p] < t[q]
		}
	}
}

// starts returns the times at which the blocks of j began, from its start to last.
func (m *machine) starts(k int, j *job, last float64) []float64 {
	list := m.trace[k][:0]
	for t := j.begin; t <= last; t += j.step {
		list = append(list, t)
	}
	m.trace[k] = list
	return list
}

// block counts the block of j that ends now.
func (m *machine) block(j *job) {
	if m.cfg.Policy == "tiresias" {
		j.prio += j.service
	}
	j.gpu += j.step
	j.comp += j.comped
	j.rem = max(0, j.rem-j.eats)
	m.report.Blocks++
}

// rate sets Dally's priority: the share of the work that is done, over the time used as a share of the ideal.
func (m *machine) rate(i int32) {
	if m.cfg.Policy == "dally" {
		j := &m.jobs[i]
		j.prio = (1 - j.rem/m.load[i].Iterations) / (j.gpu / j.ideal)
	}
}

// catchUp counts the blocks of i, which runs, that end before limit, or at it if through is set. The only effect of
// these ends is that a second gang is forgotten: a published job that did not wait has its nxt overwritten.
func (m *machine) catchUp(i int32, limit float64, through bool) {
	j := &m.jobs[i]
	moved := false
	for end := j.start + j.step; end < limit || through && end == limit; end += j.step {
		m.block(j)
		j.start = end
		moved = true
	}
	if moved {
		m.rate(i)
		j.nxt = j.nxt[:0]
	}
}

// endBlock handles the end of a block, in the authors' program's order of steps.
func (m *machine) endBlock(i int32) {
	j := &m.jobs[i]
	m.catchUp(i, m.now, false)
	m.block(j)
	m.rate(i)
	if j.rem == 0 {
		m.finish(i)
		return
	}
	if j.swap {
		m.swap(i)
		return
	}
	kept := 0
	for _, g := range j.cur {
		if m.now >= m.cl.expire[g] {
			m.cl.give(g)
		} else {
			j.cur[kept] = g
			kept++
		}
	}
	n := len(j.cur) // the delay of the pass in seconds
	freed := kept < n
	if freed {
		j.nxt = append(j.nxt, j.cur[:kept]...)
	} else {
		j.nxt = append(j.nxt[:0], j.cur...)
	}
	if m.lookAhead(i) {
		if !freed { // nxt is the same object as cur, which shrinks with it
			n = len(j.nxt)
		}
		freed = true
	}
	if len(j.nxt) > kept {
		j.nxt = append(j.nxt[:0], j.cur[:kept]...)
	}
	if freed {
		m.note(event{at: m.now + float64(n), class: pass})
	}
	if len(j.nxt) == 0 {
		m.tell(Preempt, i, j.cur)
		j.cur, j.waiting, j.last = j.cur[:0], true, m.now
		m.wait(i)
		return
	}
	m.goOn(i)
}

// lookAhead gives back the GPUs of nxt that would expire before the end of another block. Like the authors' program,
// it divides a block's time by the number of GPUs once more. It repeats the calculation for the remaining GPUs.
func (m *machine) lookAhead(i int32) (freed bool) {
	j := &m.jobs[i]
	for len(j.nxt) > 0 {
		end := m.now + j.comped/m.factorOf(i, j.nxt)/float64(len(j.nxt))
		kept := 0
		for _, g := range j.nxt {
			if end > m.cl.expire[g] {
				m.cl.give(g)
			} else {
				j.nxt[kept] = g
				kept++
			}
		}
		if kept == len(j.nxt) {
			return freed
		}
		freed = true
		j.nxt = j.nxt[:kept]
	}
	return freed
}

// goOn starts the next block on the remaining GPUs.
func (m *machine) goOn(i int32) {
	if !m.eager {
		panic("dally: a block ended with nothing to do")
	}
	m.startBlock(i)
}
