package metrics

import (
	"math"
	"math/big"
	"slices"
	"time"
)

// Quantiles describe one metric over the finished jobs. Quantiles are linear interpolations between order
// statistics. All are 0 when no job finished.
type Quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Summary is what a run did. Times are in seconds.
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
	// BoundedSlowdown is max(1, JCT / max(time on GPUs, 10 s)).
	BoundedSlowdown Quantiles `json:"bounded_slowdown"`
	// Slowdown is JCT / work, over jobs that have work.
	Slowdown Quantiles `json:"slowdown"`
	// Utilization is allocated GPU-time / (GPUs × makespan).
	Utilization float64 `json:"gpu_utilization"`
	// Effective is work done × GPUs / (GPUs × makespan): utilisation weighted by rate.
	Effective float64 `json:"effective_utilization"`
	// Communication is 1 − the mean over finished jobs of work / time on GPUs, 0 at rate 1; what restarts and
	// slow GPUs cost counts too.
	Communication float64 `json:"communication_share"`
	Preemptions   int     `json:"preemptions"`
	Migrations    int     `json:"migrations"`
}

// Summary counts the jobs gathered so far, leaving out those among the first warmup and the last tail positions
// of the run.
func (c *Collector) Summary(warmup, tail int) Summary {
	jobs := c.jobs
	if warmup > 0 || tail > 0 {
		last := -1
		for i := range jobs {
			last = max(last, jobs[i].Pos)
		}
		jobs = slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool { return j.Pos < warmup || j.Pos > last-tail })
	}
	return Summarize(jobs, c.gpus, c.end)
}

// Summarize counts jobs on a cluster of gpus GPUs. end is when the run ended; it counts as the last finish where
// jobs are unfinished.
func Summarize(jobs []Job, gpus int, end time.Duration) Summary {
	var s Summary
	n := len(jobs)
	times := make([]int64, 0, 3*n)
	jct, first, wait := times[:0:n], times[n:n:2*n], times[2*n:2*n]
	bounded, slow := make([]float64, 0, n), make([]float64, 0, n)
	var alloc, done float64
	start, finish := time.Duration(math.MaxInt64), time.Duration(0)
	ratio, ratios := 0.0, 0
	for i := range jobs {
		j := &jobs[i]
		start = min(start, j.Submit)
		milli := float64(j.GPUs*j.Milli) / 1000
		alloc += milli * j.Run.Seconds()
		done += milli * j.Work.Seconds()
		s.Preemptions += j.Preemptions
		if j.Finish < 0 {
			s.Unfinished++
			finish = max(finish, end)
			continue
		}
		s.Finished++
		finish = max(finish, j.Finish)
		t := j.Finish - j.Submit
		jct = append(jct, int64(t))
		first = append(first, int64(j.First-j.Submit))
		wait = append(wait, int64(t-j.Run))
		bounded = append(bounded, max(1, t.Seconds()/max(j.Run.Seconds(), 10)))
		if j.Work > 0 {
			slow = append(slow, float64(t)/float64(j.Work))
		}
		if j.Run > 0 {
			ratio += float64(j.Work) / float64(j.Run)
			ratios++
		}
	}
	if n == 0 {
		return s
	}
	s.JCT, s.FirstWait, s.Wait = seconds(jct), seconds(first), seconds(wait)
	s.BoundedSlowdown, s.Slowdown = quantiles(bounded), quantiles(slow)
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

// seconds sorts ns and describes it. The mean is one integer sum divided once: exact however many jobs there
// are.
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

// interpolate is quantile q of n sorted values: linear between the order statistics around (n−1)·q.
func interpolate(n int, q float64, at func(int) float64) float64 {
	x := q * float64(n-1)
	i := int(x)
	if i+1 >= n {
		return at(n - 1)
	}
	f := x - float64(i)
	return at(i) + f*(at(i+1)-at(i))
}
