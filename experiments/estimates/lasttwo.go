package estimates

import (
	"cmp"
	"slices"
	"time"

	"clustergym/traces"
)

// withLastTwo returns copies of jobs that have, in the place of their requested times, the mean run time of the last
// two jobs of the same user (without users, of the same virtual cluster) and the same number of GPUs that had ended
// when they were submitted; of all jobs if there are none such, an hour if none has ended. Jobs are taken to start when
// they are submitted.
func withLastTwo(jobs []traces.Job) []traces.Job {
	own := slices.Clone(jobs)
	ends := make([]int, len(own))
	for i := range ends {
		ends[i] = i
	}
	end := func(i int) time.Duration { return own[i].Submit + own[i].Work }
	slices.SortStableFunc(ends, func(a, b int) int { return cmp.Compare(end(a), end(b)) })
	last := map[group]two{}
	for i := range own {
		for len(ends) > 0 && end(ends[0]) <= own[i].Submit {
			ended := &own[ends[0]]
			for _, g := range []group{groupOf(ended), {}} {
				last[g] = two{last[g][1], ended.Work}
			}
			ends = ends[1:]
		}
		own[i].Estimate = time.Hour
		for _, g := range []group{groupOf(&own[i]), {}} {
			if t, ok := last[g]; ok {
				own[i].Estimate = max(1, t.mean())
				break
			}
		}
	}
	return own
}

// group is what the jobs have in common whose run times are averaged. The zero value is that of all jobs.
type group struct {
	user, vc string
	gpus     int
}

// groupOf returns the group of j.
func groupOf(j *traces.Job) group {
	if j.User != "" {
		return group{user: j.User, gpus: j.GPUs}
	}
	return group{vc: j.VC, gpus: j.GPUs}
}

// two are the run times of the last two jobs of a group; the older one is 0 if there is one only.
type two [2]time.Duration

func (t two) mean() time.Duration {
	if t[0] == 0 {
		return t[1]
	}
	return (t[0] + t[1]) / 2
}
