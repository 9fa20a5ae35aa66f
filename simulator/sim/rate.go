package sim

import (
	"fmt"
	"strings"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// A running job's rate is base × beside. base follows from its own placement and is computed when the gang is placed.
// beside is the share that the jobs on the same hardware leave of it, which changes as they come and go.

// base returns the rate at which j's gang would progress on gpus if it were alone: the speed of the slowest GPU, times
// the throughput of this many GPUs over that of the GPUs asked for, times the communication factor of the placement.
func (s *Simulator) base(j Job, st *jobState, req *cluster.Request, gpus []cluster.GPU) float64 {
	var rate float64
	if st.speeds {
		rate = s.cluster.SpeedOf(gpus, s.speedsOf(j))
	} else {
		rate = s.cluster.Speed(gpus)
	}
	n := size(req, gpus)
	if n != int(st.asked) {
		p := s.traced[j].Profile
		rate *= p.Throughput(n) / p.Throughput(int(st.asked))
	}
	if s.tree && n > 0 {
		rate *= s.cluster.BestCost(n) / s.cluster.Cost(gpus)
	}
	if s.ring != nil && n > 1 {
		rate *= s.ring.factor(s.traced[j].Profile, gpus)
	}
	return rate
}

// size returns the number of GPUs of req's gang when placed on gpus, which differs from req's if the caller asks about
// another size of an elastic job. For a job without GPUs, gpus holds its node.
func size(req *cluster.Request, gpus []cluster.GPU) int {
	if req.GPUs > 0 && len(gpus) > 0 {
		return len(gpus)
	}
	return req.GPUs
}

// beside returns the share of its rate that the jobs on the same hardware leave to j on gpus.
func (s *Simulator) beside(j Job, gpus []cluster.GPU) float64 {
	rate := 1.0
	if s.links != nil {
		rate *= s.contended(j, gpus)
	}
	if s.cfg.Interference != nil {
		rate *= s.disturbed(j, gpus)
	}
	return rate
}

// factor returns the rate at which j would progress on gpus beside the jobs that now run there.
func (s *Simulator) factor(j Job, gpus []cluster.GPU) float64 {
	st := &s.jobs[j]
	rate := s.base(j, st, &st.req, gpus)
	if s.dynamic {
		rate *= s.beside(j, gpus)
	}
	return rate
}

// update recomputes the rate of j, which runs.
func (s *Simulator) update(j Job) {
	st := &s.jobs[j]
	rate := s.more[j].base * s.beside(j, st.gpus)
	if rate == st.rate {
		return
	}
	s.settle(j, st)
	st.rate = rate
	st.finish = finishAt(st.since, st.left, st.rate)
	s.refile(st)
}

// refile moves the finish of a running job to its place in the heap after it has changed.
func (s *Simulator) refile(st *jobState) {
	at := int(st.heap)
	s.finishes[at].at = st.finish
	s.heapDown(at)
	s.heapUp(int(st.heap))
}

// ownSpeeds reports whether the model of the job read ahead has its own speeds.
func (s *Simulator) ownSpeeds() bool {
	return s.next.Profile != nil && len(s.next.Profile.Speeds) > 0 && !s.cluster.Pool()
}

// maxProfiles bounds the table below for streams that make a profile for every job.
const maxProfiles = 1 << 12

// speedsOf returns the speeds of j's model by the cluster's GPU types, 0 where it has none of its own. Published
// tables differ in how they spell types: if no name is equal, one that differs only in case counts.
func (s *Simulator) speedsOf(j Job) []float64 {
	p := s.traced[j].Profile
	own, ok := s.profile[p]
	if !ok {
		if s.profile == nil || len(s.profile) == maxProfiles {
			s.profile = map[*traces.Profile][]float64{}
		}
		own = make([]float64, len(s.cluster.Types()))
		for i, t := range s.cluster.Types() {
			v, ok := p.Speeds[t]
			for name, w := range p.Speeds { // the order does not matter: the fastest of those that differ in case counts
				if !ok && strings.EqualFold(name, t) {
					own[i] = max(own[i], w)
				}
			}
			if ok {
				own[i] = v
			}
		}
		s.profile[p] = own
	}
	return own
}

// LacksModel returns what is missing from the model of job j under the communication model called comm, "" if nothing
// is. The models ring and contention need the compute time and the gradient bytes of every job that can have more than
// one GPU: without them the communication between the GPUs is unknown.
func LacksModel(comm string, j *traces.Job) string {
	p := j.Profile
	switch {
	case comm != "ring" && comm != "contention" || max(j.GPUs, j.MaxGPUs) < 2:
		return ""
	case p == nil:
		return "no profile of its model"
	case p.Compute <= 0:
		return fmt.Sprintf("a profile (%s) with a compute time of %v for an iteration", p.Name, p.Compute)
	case p.GradientBytes < 0:
		return fmt.Sprintf("a profile (%s) with %d bytes of gradients", p.Name, p.GradientBytes)
	}
	return ""
}

// checkProfile returns an error if the model of the job read ahead lacks what the communication model needs.
func (s *Simulator) checkProfile() error {
	what := LacksModel(s.cfg.Comm, s.next)
	if what == "" {
		return nil
	}
	return fault.Errorf(
		"sim: job %d (%s) wants %d GPUs and has %s: comm %s needs compute time and gradient bytes of every gang's model, "+
			"from the trace or from a mix of models (%s)", s.read-1, s.next.ID, s.next.GPUs, what, s.cfg.Comm, fault.Key("mix"))
}
