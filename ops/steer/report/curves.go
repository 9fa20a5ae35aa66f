package report

import (
	"cmp"
	"slices"
	"time"

	"clustergym/internal/statistic"
	"clustergym/ops/incumbent"
)

// points is how many a curve has at most.
const points = 240

// curve is how a queue went: at equal distances from the first look to the last one.
type curve struct {
	name   string
	hours  []float64
	length []float64 // waiting jobs, mean since the point before
	sum    []float64 // waits so far, in hours
}

// curve counts the jobs that wait under a schedule.
func (r *replay) curve(name string, s *incumbent.Schedule) curve {
	type change struct {
		at time.Duration
		by float64
	}
	var all []change
	for i := range r.Jobs {
		from, to := max(r.Begin, r.Jobs[i].Submit), s.Starts[i]
		if to < 0 || to > r.End {
			to = r.End
		}
		if r.contends(i) && to > from {
			all = append(all, change{from, 1}, change{to, -1})
		}
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	c := curve{name: name}
	n := points
	step := (r.End - r.Begin) / time.Duration(n)
	if step <= 0 {
		return c
	}
	now, length, sum, k := r.Begin, 0.0, 0.0, 0
	for i := range n {
		to, before := r.Begin+step*time.Duration(i+1), sum
		for k < len(all) && all[k].at <= to {
			sum += length * (all[k].at - now).Seconds()
			now, length = all[k].at, length+all[k].by
			k++
		}
		sum += length * (to - now).Seconds()
		now = to
		c.hours = append(c.hours, (to - r.Begin).Hours())
		c.length = append(c.length, (sum-before)/step.Seconds())
		c.sum = append(c.sum, sum/3600)
	}
	return c
}

// binned returns, for jobs in order of the wait that was, the mean of it and of the model's in groups of equal size.
func binned(pairs [][2]float64, groups int) (list [][2]float64) {
	v := slices.Clone(pairs)
	slices.SortFunc(v, func(a, b [2]float64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	groups = min(groups, len(v))
	for g := range groups {
		part := v[g*len(v)/groups : (g+1)*len(v)/groups]
		var a, b []float64
		for _, p := range part {
			a, b = append(a, p[0]), append(b, p[1])
		}
		list = append(list, [2]float64{statistic.Mean(a), statistic.Mean(b)})
	}
	return list
}
