package workerplace

// Least returns a mean completion time in seconds that no policy gets below in the present episode, from the jobs
// alone: each runs as soon as it comes, with no other job near it, on the servers on which it is fastest, until it is
// done or the episode's time is over.
func (e *Env) Least() float64 {
	sum := 0.0
	for i := range e.jobs {
		j := &e.jobs[i]
		sum += max(0, min(j.work/e.truth.fastest(j.kind, j.workers), float64(e.cfg.Limit-j.arrives)))
	}
	return sum / float64(len(e.jobs)) * e.cfg.Interval
}

// fastest is the speed of a job without others in the placement in which it is fastest, as a part of that in the best
// one by Truth.alone: with parameter servers, more servers can be faster than few.
func (t *Truth) fastest(kind, workers int) float64 {
	most := 1.0
	p := Placed{Type: kind, Workers: workers, On: make([]int32, len(t.on))}
	// place fills the servers from m on with the workers that are left, no server with more than the one before.
	var place func(m, left, limit int)
	place = func(m, left, limit int) {
		if left == 0 {
			most = max(most, t.shape(&p))
			return
		}
		if m == len(p.On) {
			return
		}
		for n := min(left, limit); n >= 1; n-- {
			p.On[m] = int32(n)
			place(m+1, left-n, n)
		}
		p.On[m] = 0
	}
	place(0, workers, min(workers, t.gpus))
	return most
}
