package arena

import (
	"context"
	"math"
	"slices"

	"clustergym/internal/statistic"
	"clustergym/lab/envs"
	"clustergym/lab/report"
)

// fewGrow is the growth of the number of jobs in the system, for each job that arrives, above which a policy does not
// keep up.
const fewGrow = 0.02

// compareStreams plays the streams of r and compares the policies.
func (r *runner) compareStreams(ctx context.Context, opt *EvalOptions) (*report.StreamReport, error) {
	r.tick = counted(r.counts(), opt.Game)
	played, _, err := r.beside(ctx, opt.External)
	if err != nil {
		return nil, err
	}
	out := r.streamReport(played)
	if r.streams.blocks != nil {
		if out.Recorded, err = r.scenario.recorded(ctx, r, r.streams.own); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// streamReport computes statistics of the results. The reference (StreamReport.Reference) is compared
// with every other policy: the agent with each of them, or each of them with the first policy.
func (r *runner) streamReport(played [][][]result) *report.StreamReport {
	s, metric := r.streams, r.scenario.About.Metric
	est := r.scenario.About.Cut(r.scenario.Settings).Estimates
	out := &report.StreamReport{
		Protocol: "streams", Env: r.scenario.About.ID, Metric: metric.Key, Estimates: est, Rung: report.RungOf(est),
		Streams: report.StreamsInfo{Units: s.Count(), Warm: s.Warm(), Counted: s.Counted(), Seed: r.cfg.Eval.Seed,
			Settling: s.settle, Blocks: s.blocks},
		Load:        report.LoadInfo{Asked: r.scenario.load()},
		Assumptions: r.assumptions(),
	}
	if s.blocks != nil {
		out.Streams.Units = s.blocks.Bins / s.blocks.Length
	}
	for i := range r.policies {
		p := &r.policies[i]
		row := report.StreamPolicy{Name: p.name, Kind: p.kind, Missing: p.missing, Trained: p.trained, Nothing: p.nothing,
			Knows: p.knows, Greedy: string(p.greedy)}
		if p.missing == "" {
			row.Metrics = r.streamMetrics(played[i])
			if out.Load.Offered == 0 {
				out.Load.Offered = overTime(played[i], func(x *streamResult) float64 { return x.Offered })
			}
		}
		out.Policies = append(out.Policies, row)
	}
	// All others are compared with the program from outside, even if checkpoints play, too.
	ref := slices.IndexFunc(r.policies, func(p policy) bool { return p.agent() && p.kind == report.KindExternal })
	if ref < 0 {
		ref = slices.IndexFunc(r.policies, func(p policy) bool { return p.agent() })
	}
	agent := ref >= 0
	if !agent {
		ref = slices.IndexFunc(r.policies, func(p policy) bool { return p.missing == "" })
	}
	for b := range r.policies {
		if ref < 0 || b == ref || r.policies[b].missing != "" {
			continue
		}
		if agent {
			out.Paired = append(out.Paired, r.pair(ref, b, played))
		} else {
			out.Paired = append(out.Paired, r.pair(b, ref, played))
		}
	}
	statistic.JudgeAll(out.Paired, metric.Higher)
	return out
}

// pair compares two policies by the environment's metric.
func (r *runner) pair(a, b int, played [][][]result) statistic.Replicated {
	return r.compared(r.policies[a].name, r.policies[b].name, played[a], played[b])
}

// compared compares the results of two policies by the environment's metric.
func (r *runner) compared(nameA, nameB string, a, b [][]result) statistic.Replicated {
	metric := r.scenario.About.Metric
	of := summed(metric.Key)
	if bl := r.streams.blocks; bl != nil {
		return statistic.CompareBlocks(r.cfg.Eval.Seed, nameA, nameB, metric.Key, perBin(a, of), perBin(b, of), bl.Length,
			metric.Higher)
	}
	per := func(x *streamResult) float64 { return x.mean(of) }
	return statistic.CompareReplications(nameA, nameB, metric.Key, perStream(a, per), perStream(b, per), metric.Higher)
}

// values returns the metric of every unit in each play of a policy: see Scores.
func (r *runner) values(played [][]result) [][]float64 {
	if r.streams == nil || r.streams.blocks == nil {
		return sample(played, scoreOf)
	}
	of := summed(r.scenario.About.Metric.Key)
	out := make([][]float64, len(played))
	for k := range played {
		bins := played[k][0].stream.Bins
		blocks, jobs := max(1, len(bins)/r.streams.blocks.Length), 0
		sums := make([]float64, blocks)
		for i := range bins {
			sums[i*blocks/len(bins)] += of(&bins[i])
			jobs += bins[i].Jobs
		}
		for i := range sums {
			sums[i] /= float64(jobs) / float64(blocks)
		}
		out[k] = sums
	}
	return out
}

// perStream returns a value of every stream, the mean over the plays of a policy that draws.
func perStream(played [][]result, value func(*streamResult) float64) []float64 {
	out := make([]float64, len(played[0]))
	for _, row := range played {
		for i := range row {
			out[i] += value(row[i].stream) / float64(len(played))
		}
	}
	return out
}

// overTime returns the mean of a value over the time of all streams.
func overTime(played [][]result, value func(*streamResult) float64) float64 {
	sum, hours := 0.0, 0.0
	for _, row := range played {
		for i := range row {
			sum += value(row[i].stream) * row[i].stream.Span
			hours += row[i].stream.Span
		}
	}
	return sum / hours
}

// perBin returns a sum over the jobs of every bin of the one stream, the mean over the plays of a policy that draws.
func perBin(played [][]result, of func(*binned) float64) []float64 {
	out := make([]float64, len(played[0][0].stream.Bins))
	for _, row := range played {
		for i := range out {
			out[i] += of(&row[0].stream.Bins[i]) / float64(len(played))
		}
	}
	return out
}

// streamMetrics describes the results of one policy.
func (r *runner) streamMetrics(played [][]result) *report.StreamMetrics {
	stat := func(value func(*streamResult) float64) report.StreamStatistic {
		return describe(perStream(played, value))
	}
	mean := func(of func(*binned) float64) report.StreamStatistic {
		return stat(func(x *streamResult) float64 { return x.mean(of) })
	}
	m := &report.StreamMetrics{
		JCT:             mean(func(b *binned) float64 { return b.JCT }),
		Wait:            mean(func(b *binned) float64 { return b.Wait }),
		FirstWait:       mean(func(b *binned) float64 { return b.FirstWait }),
		Slowdown:        mean(func(b *binned) float64 { return b.Slowdown }),
		BoundedSlowdown: mean(func(b *binned) float64 { return b.BSLD }),
		JCT99:           stat(func(x *streamResult) float64 { return x.JCT99 }),
		Use:             stat(func(x *streamResult) float64 { return x.Use }),
		Growth:          stat((*streamResult).growth),
		After:           statistic.Mean(perStream(played, func(x *streamResult) float64 { return x.After })),
		KeepsUp:         true, GrowthP: statistic.Number(math.NaN()),
	}
	// A mean over time, as the load is: draws of the same number of jobs last differently long.
	m.Use.Mean = statistic.Number(overTime(played, func(x *streamResult) float64 { return x.Use }))
	for _, row := range played {
		for i := range row {
			m.Unfinished += row[i].stream.Unfinished
		}
	}
	growth := perStream(played, (*streamResult).growth)
	if b := r.streams.blocks; b != nil {
		growth = played[0][0].stream.growths(b.Length)
	}
	_, p := statistic.Trend(growth, fewGrow)
	if m.GrowthP = statistic.Number(p); p < statistic.Level {
		m.KeepsUp = false
	}
	if key := r.scenario.About.Metric.Key; key == "comm_cost" {
		score := mean(summed(key))
		m.Score = &score
	}
	return m
}

// describe returns the statistics of values of streams.
func describe(values []float64) report.StreamStatistic {
	mean, ci := statistic.Mean95(values)
	s := report.StreamStatistic{Mean: statistic.Number(mean), CI95: ci}
	for _, v := range values {
		s.Per = append(s.Per, statistic.Number(v))
	}
	return s
}

// growth returns by how many jobs the number of jobs in the system grows for each job that arrives.
func (s *streamResult) growth() float64 {
	jobs := 0
	for i := range s.Bins {
		jobs += s.Bins[i].Arrived
	}
	if len(s.System) < 2 || jobs == 0 {
		return 0
	}
	return float64(s.System[len(s.System)-1]-s.System[0]) / float64(jobs)
}

// growths returns growth by blocks of bins.
func (s *streamResult) growths(length int) (all []float64) {
	for i := 0; i+length < len(s.System); i += length {
		jobs := 0
		for k := range s.Bins[i : i+length] {
			jobs += s.Bins[i+k].Arrived
		}
		all = append(all, float64(s.System[i+length]-s.System[i])/float64(max(1, jobs)))
	}
	return all
}

// assumptions says what the comparison rests on.
func (r *runner) assumptions() report.Assumptions {
	w := r.scenario
	est := w.About.Cut(w.Settings).Estimates
	a := report.Assumptions{RunTimes: est.Label(), Placement: w.About.Placement(w.Settings), Communication: "none",
		Stops: "no policy stops jobs"}
	if comm, ok := envs.Setting(w.Settings, "comm"); ok {
		a.Communication, _ = comm.(string)
	}
	if a.Placement == "" {
		a.Placement = "the environment's"
	}
	if stops := r.stops(); stops != "" {
		a.Stops = stops
	}
	return a
}

// stops says what a stop of a running job costs, "" if no policy stops jobs.
func (r *runner) stops() string {
	if price := r.scenario.About.Price(r.scenario.Settings); price != "" {
		return price
	}
	if slices.ContainsFunc(r.policies, func(p policy) bool {
		return report.StopsJobs(r.scenario.About.ID, p.kind, p.name)
	}) {
		return report.FreeStops
	}
	return ""
}
