package replay

// save writes the ring: first what the reader's must agree with, then what is alive.
func (r *ring) save(e *encoder) {
	f, w := &r.frames, &r.wait
	for _, v := range []int{r.cfg.Capacity, r.cfg.NStep, r.rows, f.obsLen, f.maskLen, w.factors, w.conts} {
		e.int(v)
	}
	e.f64(r.cfg.Gamma)

	e.u64(r.added)
	e.int(r.size)
	e.int(r.pos)
	n := r.size
	put(e, r.obs[:n])
	put(e, r.next[:n])
	put(e, r.low[:n])
	put(e, r.disc[:n*w.factors])
	put(e, r.cont[:n*w.conts])
	put(e, r.reward[:n])
	put(e, r.discount[:n])

	// Waiting transitions are written oldest first, so that the saved form does not depend on where a row's ring
	// begins.
	for i, cur := range w.cur {
		e.u64(cur)
		e.int(w.len[i])
		for j := 0; j < w.len[i]; j++ {
			k := i*w.n + (w.head[i]+j)%w.n
			e.u64(w.obs[k])
			put(e, w.disc[k*w.factors:(k+1)*w.factors])
			put(e, w.cont[k*w.conts:(k+1)*w.conts])
			e.f64(w.sum[k])
			e.f64(w.prod[k])
		}
	}

	low := r.floor()
	e.u64(low)
	e.u64(f.next)
	for id := low; id < f.next; id++ {
		put(e, f.obs(id))
		e.write(f.bits(id))
	}
}

// load reads what save wrote into a new ring. The result is valid only if d has no error.
func (r *ring) load(d *decoder) *ring {
	c, rows := r.cfg.Capacity, r.rows
	for _, v := range []struct {
		name string
		want int
	}{
		{"capacity", c}, {"n_step", r.cfg.NStep}, {"number of rows", rows},
		{"observation length", r.frames.obsLen}, {"mask length", r.frames.maskLen},
		{"number of discrete factors", r.wait.factors}, {"number of continuous actions", r.wait.conts},
	} {
		d.same(v.name, float64(d.u64()), float64(v.want))
	}
	d.same("gamma", d.f64(), r.cfg.Gamma)
	if d.err != nil {
		return nil
	}

	fresh, err := newRing(r.cfg, r.spec, rows)
	if err != nil {
		d.err = err
		return nil
	}
	w := &fresh.wait
	fresh.added = d.u64()
	fresh.size = d.int("number of transitions", 0, c)
	fresh.pos = d.int("position", 0, c-1)
	n := fresh.size
	d.check(n == c || fresh.pos == n, "position %d does not follow %d transitions", fresh.pos, n)
	d.check(fresh.added >= uint64(n), "it counts %d transitions and holds %d", fresh.added, n)
	get(d, fresh.obs[:n])
	get(d, fresh.next[:n])
	get(d, fresh.low[:n])
	get(d, fresh.disc[:n*w.factors])
	finite(d, fresh.cont[:n*w.conts])
	finite(d, fresh.reward[:n])
	finite(d, fresh.discount[:n])
	for i := 0; i < n; i++ {
		d.check(fresh.discount[i] >= 0 && fresh.discount[i] <= 1, "discount of slot %d is %v", i, fresh.discount[i])
	}
	fresh.checkActions(d, fresh.disc[:n*w.factors])

	for i := range w.cur {
		w.cur[i] = d.u64()
		// With n waiting steps a transition would already be complete.
		w.len[i] = d.int("number of waiting transitions", 0, w.n-1)
		d.check(w.cur[i] != nowhere || w.len[i] == 0, "row %d waits without an observation", i)
		for j := 0; j < w.len[i]; j++ {
			k := i*w.n + j
			w.obs[k] = d.u64()
			get(d, w.disc[k*w.factors:(k+1)*w.factors])
			finite(d, w.cont[k*w.conts:(k+1)*w.conts])
			finite(d, w.sum[k:k+1])
			finite(d, w.prod[k:k+1])
			d.check(w.prod[k] >= 0 && w.prod[k] <= 1, "a waiting discount of row %d is %v", i, w.prod[k])
			fresh.checkActions(d, w.disc[k*w.factors:(k+1)*w.factors])
		}
	}
	fresh.loadFrames(d)
	return fresh
}

// loadFrames reads the observations and checks that all references are to them.
func (r *ring) loadFrames(d *decoder) {
	f, w := &r.frames, &r.wait
	low, next := d.u64(), d.u64()
	// An observation is alive for at most Capacity transitions, plus those that waited when the oldest was stored.
	// Each step adds one observation, and one more at the beginning of an episode.
	most := 2*uint64(r.cfg.Capacity) + 8*uint64(r.rows)*uint64(w.n+1)
	d.check(low <= next && next-low <= most, "it holds observations %d to %d", low, next)
	inside := func(id uint64) bool { return id >= low && id < next }
	slot := r.oldest()
	for i, last := 0, low; i < r.size; i++ { // oldest first
		d.check(inside(r.obs[slot]) && inside(r.next[slot]), "slot %d refers to observations %d and %d", slot, r.obs[slot],
			r.next[slot])
		d.check(r.low[slot] >= last && r.low[slot] <= r.obs[slot], "slot %d is out of order", slot)
		last = r.low[slot]
		slot = (slot + 1) % r.cfg.Capacity
	}
	for i, cur := range w.cur {
		d.check(cur == nowhere || inside(cur), "row %d stands at observation %d", i, cur)
		for j, id := range w.obs[i*w.n : i*w.n+w.len[i]] {
			d.check(inside(id) && id <= cur, "waiting transition %d of row %d began at observation %d", j, i, id)
			d.check(j == 0 || id > w.obs[i*w.n+j-1], "waiting transitions of row %d are out of order", i)
		}
	}
	if d.err != nil {
		return
	}
	f.next = next
	d.check(low == r.floor(), "its oldest observation is %d, want %d", low, r.floor())
	f.base = low - low%chunkFrames
	f.next = f.base
	for f.next < low { // the dead observations before low in its chunk
		f.grow()
		f.next++
	}
	for f.next < next && d.err == nil {
		f.grow()
		id := f.next
		f.next++
		get(d, f.obs(id))
		d.read(f.bits(id))
		all := byte(0)
		for _, b := range f.bits(id) {
			all |= b
		}
		d.check(all != 0 || f.maskLen == 0, "observation %d has no legal action", id)
	}
}

// checkActions checks discrete actions against the environment's sizes.
func (r *ring) checkActions(d *decoder, disc []int32) {
	sizes := r.spec.Action.Sizes
	for k, v := range disc {
		d.check(v >= 0 && int(v) < sizes[k%len(sizes)], "it holds the action %d", v)
	}
}
