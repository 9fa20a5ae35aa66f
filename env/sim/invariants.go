package sim

import (
	"fmt"

	"clustergym/env/cluster"
)

// CheckInvariants says what is wrong with the run's state, nil if nothing: no GPU beyond its capacity, gangs
// whole, free + used = total, no event before now, every job in exactly one list. It costs time in proportion
// to the cluster and the queue; builds with the tag invariants call it after every event.
func (s *Simulator) CheckInvariants() error {
	if err := s.cluster.CheckInvariants(); err != nil {
		return err
	}
	used := 0
	byGPU := map[cluster.GPU]int{}
	for i, j := range s.running {
		st := &s.jobs[j]
		if st.state != Running || int(st.list) != i {
			return fmt.Errorf("sim: job %d stands among the running and is %v", j, st.state)
		}
		if h := s.finishes[st.heap]; h.job != j || h.at != st.finish || h.at < s.now {
			return fmt.Errorf("sim: job %d finishes at %d, its event says job %d at %d, now is %d", j, st.finish, h.job, h.at, s.now)
		}
		if !s.cluster.Pool() && len(st.gpus) != st.req.GPUs {
			return fmt.Errorf("sim: job %d wants %d GPUs and has %d", j, st.req.GPUs, len(st.gpus))
		}
		if st.rate <= 0 || st.left < 0 || st.start > s.now || st.first < 0 {
			return fmt.Errorf("sim: job %d runs at rate %v since %d with %v left, now is %d", j, st.rate, st.start, st.left, s.now)
		}
		used += st.req.GPUs * st.req.Milli
		for _, g := range st.gpus {
			byGPU[g] += st.req.Milli
		}
	}
	for g, m := range byGPU {
		if m > 1000 || m+s.cluster.GPUFree(g) != 1000 {
			return fmt.Errorf("sim: GPU %d has %d thousandths used and %d free", g, m, s.cluster.GPUFree(g))
		}
	}
	if total := s.cluster.GPUs() * 1000; used+s.cluster.FreeMilli() != total {
		return fmt.Errorf("sim: %d thousandths used and %d free of %d", used, s.cluster.FreeMilli(), total)
	}
	if len(s.finishes) != len(s.running) {
		return fmt.Errorf("sim: %d jobs run, %d will finish", len(s.running), len(s.finishes))
	}
	for i := 1; i < len(s.finishes); i++ {
		if s.finishes[i].less(&s.finishes[(i-1)/2]) {
			return fmt.Errorf("sim: the finish at place %d comes before its parent", i)
		}
	}
	for i, j := range s.waiting {
		st := &s.jobs[j]
		if st.state != Waiting || int(st.list) != i || st.left < 0 {
			return fmt.Errorf("sim: job %d stands among the waiting and is %v with %v left", j, st.state, st.left)
		}
	}
	if live := int64(len(s.waiting) + len(s.running)); s.arrived != s.ended+live {
		return fmt.Errorf("sim: %d jobs arrived, %d finished, %d wait or run", s.arrived, s.ended, live)
	}
	if all := len(s.waiting) + len(s.running) + len(s.spare) + len(s.dead); all != len(s.jobs) {
		return fmt.Errorf("sim: %d of %d numbers are accounted for", all, len(s.jobs))
	}
	if s.more && int64(s.next.Submit) < s.now {
		return fmt.Errorf("sim: the next job arrives at %v, now is %d", s.next.Submit, s.now)
	}
	return nil
}
