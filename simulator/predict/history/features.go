package history

import (
	"math"

	"clustergym/simulator/predict"
	"clustergym/traces"
)

// The statistics of a sample that Features gives.
var statistics = [...]string{"last", "last_two", "quartile", "median", "upper_quartile", "count", "running"}

var kindNames = [most]string{"user_gpus_name", "user_gpus", "user", "vc_gpus", "all"}

// FeatureNames names what Features writes: for each kind of key the logarithms of run times, counted as samples count
// them, and numbers of jobs.
func FeatureNames() []string {
	var names []string
	for _, k := range kindNames {
		for _, s := range statistics {
			names = append(names, k+"_"+s)
		}
	}
	return names
}

// Features writes what is known of jobs like the one of this number, which has just been submitted (Predict), to dst,
// in the order of FeatureNames; NaN = not known.
func (p *Predictor) Features(number int, dst []float32) {
	for i := range dst[:most*len(statistics)] {
		dst[i] = float32(math.NaN())
	}
	b := &p.jobs[number]
	for i, key := range b.keys[:b.n] {
		s := &p.samples[key]
		d := dst[int(b.kind[i])*len(statistics):][:len(statistics)]
		d[5], d[6] = float32(s.n), float32(s.live)
		if s.n == 0 {
			continue
		}
		s.sort()
		newest := (int(s.at) + int(s.n) - 1) % Keep
		d[0] = logOf(s.last[newest], b.unit)
		if s.n > 1 {
			d[1] = (d[0] + logOf(s.last[(newest+Keep-1)%Keep], b.unit)) / 2
		}
		d[2], d[3], d[4] = logOf(s.quantile(0.25), b.unit), logOf(s.quantile(0.5), b.unit), logOf(s.quantile(0.75), b.unit)
	}
}

// Past implements predict.Historian. Of a user and of a virtual cluster it looks at the last Keep jobs.
func (p *Predictor) Past(number int) (user, vc predict.Past) {
	b := p.known(number)
	if b == nil {
		return user, vc
	}
	all := &p.samples[b.keys[b.n-1]] // the coarsest key
	for i, key := range b.keys[:b.n] {
		s := &p.samples[key]
		past := predict.Past{Ended: int32(s.n)}
		if s.n > 0 {
			all.sort()
			s.sort()
			if m := all.quantile(0.5); m > 0 {
				past.Ratio = s.quantile(0.5) / m
			}
		}
		switch b.kind[i] {
		case byUser:
			user = past
		case byVC:
			vc = past
		}
	}
	return user, vc
}

// logOf returns the logarithm of a run time that is counted in units, at least that of a millisecond.
func logOf(x, unit float64) float32 { return float32(math.Log(max(x, 1e6/unit))) }

// Unit returns what the run time of j is counted in, in nanoseconds: its requested time, or 1.
func Unit(j *traces.Job) float64 { return unit(j) }
