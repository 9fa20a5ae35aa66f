package sim

// leftAt returns the remaining work of a job at now.
func leftAt(st *jobState, now int64) float64 {
	switch {
	case st.state != Running || now <= st.since:
		return st.left
	case now >= st.finish: // reaching the finish completes it by definition, whatever the rounding
		return 0
	}
	return max(0, st.left-float64(now-st.since)*st.rate)
}

// settle updates the remaining work of a running job, before its rate changes or it stops.
func (s *Simulator) settle(j Job, st *jobState) {
	if s.now <= st.since {
		return
	}
	if c := int64(s.cfg.Checkpoint); c > 0 {
		m := s.extra(j)
		// The last checkpoint; one before since is already recorded.
		if last := s.now - (s.now-m.begun)%c; last >= st.since {
			m.saved = leftAt(st, last)
		}
	}
	st.left, st.since = leftAt(st, s.now), s.now
}

// rollBack returns a settled job to its last checkpoint. Without checkpoints nothing is lost, as if every moment were
// one.
func (s *Simulator) rollBack(j Job, st *jobState) {
	if s.cfg.Checkpoint > 0 {
		m := s.extra(j)
		m.lost += m.saved - st.left
		st.left = m.saved
	}
}

// begin makes j's gang, placed now, progress after the overhead.
func (s *Simulator) begin(j Job, st *jobState, overhead int64) {
	st.since = s.now + min(overhead, maxTime-s.now)
	st.finish = finishAt(st.since, st.left, st.rate)
	m := s.extra(j)
	m.begun, m.saved, m.owed = st.since, st.left, 0
}

// account sums the GPU-time of jobs whose gang has had another size than asked for. It is called before the gang's
// size changes, before it stops, and when it starts.
func (s *Simulator) account(j Job, st *jobState) {
	if st.sized {
		m := s.extra(j)
		if st.state == Running {
			m.area.add(st.req.GPUs*st.req.Milli, s.now-m.held)
		}
		m.held = s.now
	}
}

// resized changes j's request to n GPUs; account must have been called.
func (s *Simulator) resized(j Job, st *jobState, n int) {
	if st.req.GPUs == n {
		return
	}
	if !st.sized {
		m := s.extra(j)
		m.area, m.held = s.gpuTime(j), s.now
		st.sized = true
	}
	st.req = s.cluster.Resized(st.req, n)
}

// gpuTime returns the GPU-time that j has held so far.
func (s *Simulator) gpuTime(j Job) (t gpuTime) {
	st := &s.jobs[j]
	switch {
	case !st.sized:
		t.add(int(st.asked)*st.req.Milli, s.ran(st))
	case st.state == Running:
		t = s.more[j].area
		t.add(st.req.GPUs*st.req.Milli, s.now-s.more[j].held)
	default:
		t = s.more[j].area
	}
	return t
}

// ran returns the time that a job has spent on GPUs so far.
func (s *Simulator) ran(st *jobState) int64 {
	if st.state == Running {
		return st.ran + s.now - st.start
	}
	return st.ran
}
