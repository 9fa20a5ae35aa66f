package asrpt

import "math"

// bounds are seconds that no schedule of a workload falls short of, however much it knows.
type bounds struct {
	any     float64 // of the sum of the times from submit to finish
	steady  float64 // the same of schedules that do not stop jobs and run each at one speed
	submits float64 // the sum of the submits: what times from 0 on have more
}

// lower returns the bounds of jobs on a cluster with as many GPUs. No iteration is shorter than inside one server, so:
//
//   - A job takes at least its shortest run time.
//   - The cluster, with its GPUs shared out at will, is a single machine, and preemptive SRPT is the best schedule of
//     that one.
//   - The mean busy time of a job that runs at one speed is half its run time before its finish, and no schedule of the
//     single machine has a lesser sum of mean busy times than preemptive SPT (Goemans, Queyranne, Schulz, Skutella,
//     Wang, 2002).
func lower(jobs []job, gpus int) bounds {
	runs, submits := 0.0, 0.0
	shared := make([]float64, len(jobs))
	for i := range jobs {
		d := jobs[i].iterations * jobs[i].least
		runs += d
		submits += jobs[i].submit
		shared[i] = d * float64(jobs[i].graph.gpus) / float64(gpus)
	}
	ends := 0.0
	for _, e := range srptEnds(jobs, shared) {
		ends += e
	}
	b := bounds{any: max(runs, ends-submits), submits: submits}
	b.steady = max(b.any, busyTimes(jobs, shared)+runs/2-submits)
	return b
}

// srptEnds returns when a single machine under preemptive SRPT finishes each job, given their work in seconds.
func srptEnds(jobs []job, work []float64) []float64 {
	ends := make([]float64, len(jobs))
	v := &virtual{}
	done := func(j int, at float64) { ends[j] = at }
	for i := range jobs {
		v.advance(jobs[i].submit, done)
		v.add(jobs[i].submit, i, work[i])
	}
	v.advance(math.Inf(1), done)
	return ends
}

// busyTimes returns the sum of the mean busy times of a single machine on which always the job with the least work,
// done or not, runs.
func busyTimes(jobs []job, work []float64) float64 {
	left := make([]float64, len(jobs))
	sum, now := 0.0, 0.0
	var present []entry // the one with the least work last
	serve := func(until float64) {
		for len(present) > 0 && now < until {
			last := &present[len(present)-1]
			t := min(left[last.job], until-now)
			sum += t * (now + t/2) / work[last.job]
			now += t
			if left[last.job] -= t; left[last.job] <= 0 {
				present = present[:len(present)-1]
			}
		}
		now = max(now, until)
	}
	for i := range jobs {
		serve(jobs[i].submit)
		left[i] = work[i]
		at := len(present)
		for at > 0 && present[at-1].key < work[i] {
			at--
		}
		present = append(present, entry{})
		copy(present[at+1:], present[at:])
		present[at] = entry{i, work[i]}
	}
	serve(math.Inf(1))
	return sum
}

// guarantee returns the sum of completion times that A-SRPT cannot exceed on jobs with exact predictions, if nobody is
// held back: while a job that the virtual machine has finished waits, more GPUs are busy than are free beside the
// largest gang, and only with jobs that the virtual machine finished before it.
//
//	C ≤ V (1 + ρ G / (G − g + 1)) + ρ d
//
// V is its end on the virtual machine, d its run time on the empty cluster, G the GPUs, g the largest gang, and ρ the
// ratio by which placements slow iterations down at most.
func guarantee(jobs []job, gpus int, out []outcome) float64 {
	work := make([]float64, len(jobs))
	slow, widest, runs := 1.0, 0, 0.0
	for i := range jobs {
		work[i] = jobs[i].solo() * float64(jobs[i].graph.gpus) / float64(gpus)
		slow = max(slow, out[i].iteration/jobs[i].best)
		widest = max(widest, jobs[i].graph.gpus)
		runs += jobs[i].solo()
	}
	ends := 0.0
	for _, e := range srptEnds(jobs, work) {
		ends += e
	}
	return ends*(1+slow*float64(gpus)/float64(gpus-widest+1)) + slow*runs
}
