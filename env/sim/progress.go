package sim

// leftAt is the work left of a job at now.
func leftAt(st *jobState, now int64) float64 {
	switch {
	case st.state != Running || now <= st.since:
		return st.left
	case now >= st.finish: // which completes it by definition, whatever the rounding
		return 0
	}
	return max(0, st.left-float64(now-st.since)*st.rate)
}

// settle brings what is left of a running job up to date: before its rate changes or it stops.
func (s *Simulator) settle(st *jobState) {
	if s.now <= st.since {
		return
	}
	if c := int64(s.cfg.Checkpoint); c > 0 {
		// The last checkpoint; one before since is known already.
		if last := s.now - (s.now-st.begun)%c; last >= st.since {
			st.saved = leftAt(st, last)
		}
	}
	st.left, st.since = leftAt(st, s.now), s.now
}

// rollBack takes the job back to its last checkpoint. Without checkpoints nothing is lost: every moment is one.
func (s *Simulator) rollBack(st *jobState) {
	if s.cfg.Checkpoint > 0 {
		st.lost += st.saved - st.left
		st.left = st.saved
	}
}

// begin lets st's gang, placed now, progress once the overhead is over.
func (s *Simulator) begin(st *jobState, overhead int64) {
	st.since = s.now + min(overhead, maxTime-s.now)
	st.begun, st.saved = st.since, st.left
	st.finish = finishAt(st.since, st.left, st.rate)
}

// account adds the GPU-time of the gang since it had its present size.
func (s *Simulator) account(st *jobState) {
	st.area.add(st.req.GPUs*st.req.Milli, s.now-st.held)
	st.held = s.now
}
