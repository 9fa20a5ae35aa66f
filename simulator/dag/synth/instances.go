package synth

import "math"

// Instances is the published description of one workload file of the WORL-RTGS authors: the instances of one task of
// one job of Alibaba's cluster-trace-v2018.
type Instances struct {
	Nominal int     // the size in its name
	Rows    int     // the number of tasks in it
	Mean    float64 // duration, seconds
	Max     float64
}

// table holds counts from the authors' public files (19 sizes). In the trace the instances of one task have no edges
// between them; it is not known how the authors drew theirs.
var table = []Instances{
	{100, 196, 908, 3680}, {200, 257, 481, 539}, {300, 371, 614, 880}, {400, 417, 490, 855}, {500, 546, 284, 390},
	{600, 684, 309, 533}, {700, 790, 189, 344}, {800, 846, 305, 482}, {900, 989, 341, 691}, {1000, 1413, 467, 1002},
	{2000, 2011, 225, 571}, {3000, 3297, 189, 857}, {4000, 4127, 66, 142}, {5000, 5718, 54, 236}, {6000, 6725, 80, 246},
	{7000, 7785, 13, 53}, {8000, 8868, 15, 68}, {9000, 9177, 54, 103}, {10000, 9790, 189, 424},
}

// instances draws Config.Tasks durations like those of the file of the nearest nominal size: from 0 to the longest,
// with a power-law density whose mean is the file's.
func (m *maker) instances() {
	at := table[0]
	for _, t := range table {
		if math.Abs(float64(t.Nominal-m.c.Tasks)) < math.Abs(float64(at.Nominal-m.c.Tasks)) {
			at = t
		}
	}
	power := at.Max/at.Mean - 1 // the mean of u^power is 1/(power+1)
	for range m.c.Tasks {
		m.works = append(m.works, at.Max*math.Pow(1-m.src.Float64(), power))
	}
}
