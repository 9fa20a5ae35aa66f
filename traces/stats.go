package traces

import (
	"cmp"
	"io"
	"math/bits"
	"slices"
	"time"
)

// Stats describes a workload.
type Stats struct {
	Jobs        int
	First, Last time.Duration // earliest and latest submit
	Span        time.Duration // Last - First
	JobsPerHour float64       // Jobs / Span; 0 if Span is 0
	Work        Spread        // run times, including those of 0
	GPUHours    float64       // sum of n·work; shared GPUs count by their share
	Sizes       []Size        // smallest first
	Users       []Count       // most jobs first, ties by name; jobs without a user are not counted. Likewise the next four
	VCs         []Count
	Models      []Count
	Groups      []Count
	Names       []Count // of jobs
	Repeats     int     // jobs that come after one of the same user and name; jobs without either are not counted
	Statuses    [4]int  // by Status
	NoEstimate  int     // jobs without an estimate
	ZeroWork    int     // jobs whose run time is 0
	Shared      int     // jobs that want less than a whole GPU
}

// Spread is a distribution of times. Quantiles are by nearest rank: the value at index floor(p·n), from 0, of the
// sorted sample. Tables of traces are usually made this way; results of simulations are interpolated instead.
type Spread struct{ P50, P90, P99, Mean, Max time.Duration }

// Size counts the jobs of one size.
type Size struct {
	Milli    int // demand in thousandths of a GPU
	Jobs     int
	GPUHours float64
}

// Count is the number of jobs that have a name.
type Count struct {
	Name string
	Jobs int
}

// Between returns the number of jobs that ask for at least from and less than to thousandths of a GPU; to = 0 means no
// limit.
func (s *Stats) Between(from, to int) int {
	n := 0
	for _, z := range s.Sizes {
		if z.Milli >= from && (to == 0 || z.Milli < to) {
			n += z.Jobs
		}
	}
	return n
}

// Summarize reads s to its end and describes it. It keeps the run times (eight bytes a job) and the distinct names and
// sizes in memory, nothing else. The jobs may be in any order; Repeats follows the order in which they come.
func Summarize(s Stream) (Stats, error) {
	type size struct {
		jobs int
		area sum128
	}
	var (
		st    Stats
		j     Job
		work  []time.Duration
		area  sum128
		sizes = map[int]*size{}
		named = [...]map[string]int{{}, {}, {}, {}, {}} // users, VCs, models, groups, names
		known = map[[2]string]bool{}                    // users with names of their jobs
	)
	for {
		if err := s.Next(&j); err == io.EOF {
			break
		} else if err != nil {
			return Stats{}, err
		}
		if st.Jobs == 0 {
			st.First, st.Last = j.Submit, j.Submit
		}
		st.Jobs++
		st.First, st.Last = min(st.First, j.Submit), max(st.Last, j.Submit)
		work = append(work, j.Work)
		z := sizes[j.Milli()]
		if z == nil {
			z = new(size)
			sizes[j.Milli()] = z
		}
		z.jobs++
		z.area.mul(max(0, j.Milli()), max(0, j.Work))
		area.mul(max(0, j.Milli()), max(0, j.Work))
		for i, name := range [...]string{j.User, j.VC, j.Model, j.Group, j.Name} {
			if name != "" {
				named[i][name]++
			}
		}
		if k := [2]string{j.User, j.Name}; k[0] != "" && k[1] != "" {
			if known[k] {
				st.Repeats++
			}
			known[k] = true
		}
		if int(j.Status) < len(st.Statuses) {
			st.Statuses[j.Status]++
		}
		if j.Estimate == 0 {
			st.NoEstimate++
		}
		if j.Work == 0 {
			st.ZeroWork++
		}
		if j.GPUMilli < 1000 {
			st.Shared++
		}
	}
	st.Span = st.Last - st.First
	if st.Span > 0 {
		st.JobsPerHour = float64(st.Jobs) / st.Span.Hours()
	}
	const milliHour = 1000 * float64(time.Hour)
	st.GPUHours = area.float() / milliHour
	for m, z := range sizes { // sorted below
		st.Sizes = append(st.Sizes, Size{Milli: m, Jobs: z.jobs, GPUHours: z.area.float() / milliHour})
	}
	slices.SortFunc(st.Sizes, func(a, b Size) int { return cmp.Compare(a.Milli, b.Milli) })
	for i, to := range [...]*[]Count{&st.Users, &st.VCs, &st.Models, &st.Groups, &st.Names} {
		*to = counts(named[i])
	}
	slices.Sort(work)
	st.Work = SpreadOf(work)
	return st, nil
}

func counts(m map[string]int) []Count {
	var c []Count
	for name, n := range m { // sorted below
		c = append(c, Count{name, n})
	}
	slices.SortFunc(c, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Name, b.Name)) })
	return c
}

// SpreadOf describes a sorted sample of times that are 0 or more. An empty sample gives zeros.
func SpreadOf(sorted []time.Duration) Spread {
	n := len(sorted)
	if n == 0 {
		return Spread{}
	}
	var sum sum128
	for _, d := range sorted {
		sum.mul(1, max(0, d))
	}
	rank := func(percent int) time.Duration { return sorted[min(n-1, n*percent/100)] }
	return Spread{P50: rank(50), P90: rank(90), P99: rank(99), Mean: sum.mean(n), Max: sorted[n-1]}
}

// sum128 adds products of non-negative numbers exactly: a month of a large cluster, in thousandths of a GPU times
// nanoseconds, does not fit 64 bits.
type sum128 struct{ hi, lo uint64 }

func (s *sum128) mul(n int, d time.Duration) {
	hi, lo := bits.Mul64(uint64(n), uint64(d))
	var c uint64
	s.lo, c = bits.Add64(s.lo, lo, 0)
	s.hi, _ = bits.Add64(s.hi, hi, c)
}

func (s *sum128) float() float64 { return float64(s.hi)*(1<<64) + float64(s.lo) }

// mean divides by n and rounds down. The sum is of n numbers below 2^63, so the quotient fits.
func (s *sum128) mean(n int) time.Duration {
	q, _ := bits.Div64(s.hi, s.lo, uint64(n))
	return time.Duration(q)
}
