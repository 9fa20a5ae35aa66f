package metrics

import (
	"iter"
	"math"
	"math/big"
	"slices"
	"time"
)

// Quantiles describe one metric over the finished jobs, by linear interpolation between order statistics. All are 0 if
// no job finished.
type Quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Summary holds the metrics of a run. Times are in seconds. Everything counts jobs, never members of gangs. Jobs cut
// by warm-up and tail are left out of all metrics but QueueLength and Fragmentation, which cover the whole run.
type Summary struct {
	Finished   int     `json:"finished"`
	Unfinished int     `json:"unfinished"`
	Makespan   float64 `json:"makespan_s"` // last finish − first submit
	// JCT is finish − submit.
	JCT Quantiles `json:"jct_s"`
	// FirstWait is first start − submit.
	FirstWait Quantiles `json:"first_wait_s"`
	// Wait is JCT − time on GPUs.
	Wait Quantiles `json:"wait_s"`
	// BoundedSlowdown is max(1, JCT / max(work, 10 s)). Work is the run time alone at speed 1, so restarts, overheads,
	// interference, communication and slow GPUs make it worse.
	BoundedSlowdown Quantiles `json:"bounded_slowdown"`
	// Slowdown is JCT / work, over jobs that have work.
	Slowdown Quantiles `json:"slowdown"`
	// Utilization is allocated GPU-time / (GPUs × makespan).
	Utilization float64 `json:"gpu_utilization"`
	// Effective is work done × GPUs / (GPUs × makespan): utilisation weighted by rate.
	Effective float64 `json:"effective_utilization"`
	// Communication is 1 − the mean over finished jobs of the time that the work would take alone at speed 1 on as many
	// GPUs as the job held / the time on GPUs, 0 at rate 1; the cost of restarts and slow GPUs counts too. A job that fast
	// GPUs finish sooner than that counts as 0. For a job whose number of GPUs changed, it is the mean number that it
	// held.
	Communication float64 `json:"communication_share"`
	Preemptions   int     `json:"preemptions"`
	Migrations    int     `json:"migrations"`
	// Fairness is finish-time fairness ρ (Themis, NSDI 2020): JCT over the time that the job would take alone on an
	// equal share of the cluster, which is work × max(1, GPUs × N / cluster GPUs), N being the mean number of jobs in
	// the system during its life. Above 1, the job was served worse than by equal shares.
	Fairness Quantiles `json:"finish_time_fairness"`
	// Jain is Jain's index of the slowdowns x: (Σx)² / (n·Σx²), 1 = all alike.
	Jain float64 `json:"jain_index"`
	// QueueLength is the number of waiting jobs, weighted by time.
	QueueLength Quantiles `json:"queue_length"`
	// Fragmentation is the share of the free GPUs that are on nodes in use, averaged over the time in which any GPU is
	// free; 0 on a counter (pool).
	Fragmentation  float64 `json:"fragmentation"`
	Deadlines      int     `json:"deadlines"`       // finished jobs with a deadline
	DeadlineMisses int     `json:"deadline_misses"` // finished jobs that missed their deadline
	Dropped        int     `json:"dropped"`         // jobs that left without finishing
	Failures       int     `json:"failures"`        // times a job lost its node
	Lost           float64 `json:"lost_s"`          // progress lost to stops and failures, summed over all jobs
}

// Summary returns the metrics of the jobs recorded so far, without those among the first warmup and the last tail
// positions of the run.
func (c *Collector) Summary(warmup, tail int) Summary {
	last := -1
	if tail > 0 {
		for j := range c.Jobs() {
			last = max(last, int(j.Pos))
		}
	}
	keep := func(j *Job) bool { return int(j.Pos) >= warmup && (tail <= 0 || int(j.Pos) <= last-tail) }
	s := summarize(func(yield func(*Job) bool) {
		for j := range c.Jobs() {
			if keep(j) && !yield(j) {
				return
			}
		}
	}, c.Len(), c.gpus, c.end, c.alone)
	s.QueueLength = c.queue.quantiles()
	if c.nodes.span > 0 {
		s.Fragmentation = c.nodes.area / c.nodes.span
	}
	s.Dropped, s.Failures, s.Lost = c.dropped, c.failed, c.lost.Seconds()
	return s
}

// Summarize returns the metrics of jobs on a cluster of gpus GPUs. end is when the run ended; it counts as the last
// finish if any job is unfinished.
func Summarize(jobs []Job, gpus int, end time.Duration) Summary {
	return summarize(func(yield func(*Job) bool) {
		for i := range jobs {
			if !yield(&jobs[i]) {
				return
			}
		}
	}, len(jobs), gpus, end, nil)
}

// summarize iterates over the jobs once for each metric, with one column in memory at a time. alone has, by position,
// the time that the work of a job would take alone on as many GPUs as it held, where that is not the job's work.
func summarize(jobs iter.Seq[*Job], most, gpus int, end time.Duration, alone map[int32]time.Duration) Summary {
	var s Summary
	var alloc, done float64
	start, finish := time.Duration(math.MaxInt64), time.Duration(0)
	ratio, ratios, n := 0.0, 0, 0
	for j := range jobs {
		n++
		start = min(start, j.Submit)
		alloc += j.GPUTime
		done += float64(j.GPUs) * float64(j.Milli) / 1000 * j.Work.Seconds()
		s.Preemptions += int(j.Preemptions)
		s.Migrations += int(j.Migrations)
		if j.Finish < 0 {
			s.Unfinished++
			finish = max(finish, end)
			continue
		}
		s.Finished++
		finish = max(finish, j.Finish)
		if j.Run > 0 {
			work, other := alone[j.Pos]
			if !other {
				work = j.Work
			}
			ratio += min(1, float64(work)/float64(j.Run))
			ratios++
		}
		if j.Deadline {
			s.Deadlines++
		}
		if j.Missed {
			s.DeadlineMisses++
		}
	}
	if n == 0 {
		return s
	}
	ns := make([]int64, 0, min(n, most))
	times := func(of func(*Job) time.Duration) Quantiles {
		ns = ns[:0]
		for j := range jobs {
			if j.Finish >= 0 {
				ns = append(ns, int64(of(j)))
			}
		}
		return seconds(ns)
	}
	s.JCT = times(func(j *Job) time.Duration { return j.Finish - j.Submit })
	s.FirstWait = times(func(j *Job) time.Duration { return j.First - j.Submit })
	s.Wait = times(func(j *Job) time.Duration { return j.Finish - j.Submit - j.Run })
	vs := make([]float64, 0, min(n, most))
	values := func(of func(*Job) (float64, bool)) Quantiles {
		vs = vs[:0]
		for j := range jobs {
			if v, ok := of(j); ok && j.Finish >= 0 {
				vs = append(vs, v)
			}
		}
		return quantiles(vs)
	}
	s.BoundedSlowdown = values(func(j *Job) (float64, bool) {
		return max(1, (j.Finish-j.Submit).Seconds()/max(j.Work.Seconds(), 10)), true
	})
	s.Fairness = values(func(j *Job) (float64, bool) { return float64(j.Fairness), j.Fairness > 0 })
	s.Slowdown = values(func(j *Job) (float64, bool) { return float64(j.Finish-j.Submit) / float64(j.Work), j.Work > 0 })
	s.Jain = jain(vs)
	if span := (finish - start).Seconds(); span > 0 {
		s.Makespan = span
		s.Utilization = alloc / (float64(gpus) * span)
		s.Effective = done / (float64(gpus) * span)
	}
	if ratios > 0 {
		s.Communication = 1 - ratio/float64(ratios)
	}
	return s
}

// jain returns Jain's index of vs, 0 if vs is empty.
func jain(vs []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range vs {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(vs)) * squares)
}

// seconds sorts ns and describes it. The mean is one integer sum divided once, so it is exact for any number of jobs.
func seconds(ns []int64) Quantiles {
	if len(ns) == 0 {
		return Quantiles{}
	}
	var sum big.Int
	part := int64(0)
	for _, v := range ns {
		if v > math.MaxInt64/2 || part > math.MaxInt64/2 {
			sum.Add(&sum, big.NewInt(part))
			part = 0
		}
		part += v
	}
	sum.Add(&sum, big.NewInt(part))
	mean, _ := new(big.Rat).SetFrac(&sum, big.NewInt(int64(len(ns))*int64(time.Second))).Float64()
	slices.Sort(ns)
	at := func(q float64) float64 {
		return interpolate(len(ns), q, func(i int) float64 { return float64(ns[i]) / 1e9 })
	}
	return Quantiles{Mean: mean, P50: at(.5), P90: at(.9), P99: at(.99), Max: at(1)}
}

func quantiles(vs []float64) Quantiles {
	if len(vs) == 0 {
		return Quantiles{}
	}
	sum := 0.0
	for _, v := range vs {
		sum += v
	}
	slices.Sort(vs)
	at := func(q float64) float64 { return interpolate(len(vs), q, func(i int) float64 { return vs[i] }) }
	return Quantiles{Mean: sum / float64(len(vs)), P50: at(.5), P90: at(.9), P99: at(.99), Max: at(1)}
}

// interpolate returns quantile q of n sorted values: linear between the order statistics around (n−1)·q.
func interpolate(n int, q float64, at func(int) float64) float64 {
	x := q * float64(n-1)
	i := int(x)
	if i+1 >= n {
		return at(n - 1)
	}
	f := x - float64(i)
	return at(i) + f*(at(i+1)-at(i))
}
