package lwf

import (
	"context"
	"fmt"
	"math"
	"time"

	"clustergym/experiments/study"
	peer "clustergym/peer/lwf"
)

// generated is the label of workloads of our generator, and theirs of those of the authors' generator.
const (
	generated = "ours"
	theirs    = "authors'"
)

// playCell returns the cell of playAll on the jobs that load returns.
func playCell(key, kind, draw string, input any, load func() ([]peer.Job, error)) study.Cell {
	return study.Cell{Key: key, Input: []any{method, input},
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			jobs, err := load()
			if err != nil {
				return nil, err
			}
			return playAll(ctx, b, jobs, kind, draw)
		}}
}

// cells returns the study's units of work.
func (s *settings) cells(p study.Plan) ([]study.Cell, error) {
	files, err := findRecorded(p.Data)
	if err != nil {
		return nil, err
	}
	var all []study.Cell
	for d := range s.Draws {
		load := func() ([]peer.Job, error) { return peer.Generate(peer.Program, uint64(d)), nil }
		all = append(all, playCell(fmt.Sprintf("play/generated/%d", d), generated, fmt.Sprint(d), d, load))
	}
	for _, o := range files {
		if o.like160 {
			all = append(all, playCell("play/"+o.name, theirs, o.name, o.sha, o.load))
		}
	}
	for _, span := range s.Spans {
		for d := range s.SpanDraws {
			all = append(all, study.Cell{
				Key: fmt.Sprintf("span/%d/%d", span, d), Input: []any{method, span, d},
				Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) { return playSpan(ctx, span, d) },
			})
		}
	}
	for _, span := range s.FluidSpans {
		for d := range s.FluidDraws {
			all = append(all, study.Cell{
				Key: fmt.Sprintf("fluid/%d/%d", span, d), Input: []any{method, span, d},
				Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) {
					return playFluid(ctx, within(span), fmt.Sprint(span), d)
				},
			})
		}
	}
	for d := range s.FluidPaperDraws {
		all = append(all, study.Cell{
			Key: fmt.Sprintf("fluid/paper/%d", d), Input: []any{method, "paper", d},
			Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) {
				return playFluid(ctx, peer.Paper, paperSpan, d)
			},
		})
	}
	for d := range s.PaperDraws {
		all = append(all, study.Cell{
			Key: fmt.Sprintf("paper/%d", d), Input: []any{method, d},
			Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) { return playPaper(ctx, peer.Paper, d) },
		})
	}
	for _, o := range files {
		all = append(all, study.Cell{
			Key: "equal/" + o.name, Input: []any{method, o.sha, o.results},
			Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) { return o.compare(ctx) },
		})
	}
	return append(all, study.Cell{Key: "speed", Input: []any{method}, Alone: true, Run: measure}), nil
}

// playAll plays one workload under all placements and rules on shared GPUs, and under some on own ones.
func playAll(ctx context.Context, b *study.Bench, jobs []peer.Job, kind, draw string) ([]study.Row, error) {
	type combination struct{ gpus, placement, rule string }
	var all []combination
	for _, placement := range append(kappas(), firstFit, random) {
		for _, rule := range sharing() {
			all = append(all, combination{shared, placement, rule})
		}
	}
	for _, placement := range []string{lwf1, firstFit} {
		for _, rule := range sharing() {
			all = append(all, combination{own, placement, rule})
		}
	}
	cluster := peer.DefaultConfig()
	var rows []study.Row
	p := player{}
	for i, c := range all {
		r, err := p.play(ctx, jobs, c.gpus, c.placement, c.rule, 0)
		if err != nil {
			return nil, fmt.Errorf("%s, %s, %s: %w", c.gpus, c.placement, c.rule, err)
		}
		labels := []string{"jobs", kind, "GPUs", c.gpus, "placement", c.placement, "rule", c.rule, "draw", draw}
		rows = append(rows, study.NewRow("plays", "jct_s", r.MeanJCT(jobs)/1000, labels...),
			study.NewRow("plays", "busy", float64(r.Busy)/float64(r.Steps)/float64(cluster.Nodes*cluster.GPUs), labels...),
			study.NewRow("plays", "makespan_s", float64(r.Steps-1)/1000, labels...),
			study.NewRow("plays", "moved", r.Moved/sentBy(jobs, r), labels...))
		b.Progress(int64(i+1), int64(len(all)))
	}
	return rows, nil
}

// sentBy returns the MB that the jobs of r sent, at least 1.
func sentBy(jobs []peer.Job, r *peer.Report) float64 {
	sum := 0.0
	for i := range jobs {
		if r.Jobs[i].Nodes > 1 {
			sum += jobs[i].Size * float64(jobs[i].Iterations)
		}
	}
	return math.Max(1, sum)
}

// playPaper plays a workload of the paper's scale, under the rules and placements of its figures.
func playPaper(ctx context.Context, scale peer.Scale, draw int) ([]study.Row, error) {
	jobs := peer.Generate(scale, uint64(draw))
	var rows []study.Row
	p := player{}
	for _, placement := range []string{lwf1, firstFit} {
		for _, rule := range []string{srsf1, srsf2, ada, adaOrig} {
			r, err := p.play(ctx, jobs, shared, placement, rule, 0)
			if err != nil {
				return nil, err
			}
			rows = append(rows,
				study.NewRow("paper", "jct_s", r.MeanJCT(jobs)/1000, "placement", placement, "rule", rule, "draw",
					fmt.Sprint(draw)))
		}
	}
	return rows, nil
}

// within returns the scale of the authors' program with arrivals within span seconds.
func within(span int64) peer.Scale {
	s := peer.Program
	s.Span = span * 1000
	return s
}

// playSpan plays a workload whose jobs arrive within span seconds, placed by LWF-1.
func playSpan(ctx context.Context, span int64, draw int) ([]study.Row, error) {
	jobs := peer.Generate(within(span), uint64(draw))
	var rows []study.Row
	p := player{}
	for _, rule := range sharing() {
		r, err := p.play(ctx, jobs, shared, lwf1, rule, 0)
		if err != nil {
			return nil, err
		}
		rows = append(rows,
			study.NewRow("spans", "jct_s", r.MeanJCT(jobs)/1000, "span", fmt.Sprint(span), "rule", rule, "draw",
				fmt.Sprint(draw)))
	}
	return rows, nil
}

// measure measures how fast the machine is.
func measure(ctx context.Context, _ *study.Bench) ([]study.Row, error) {
	jobs := peer.Generate(peer.Program, 0)
	iterations := int64(0)
	for i := range jobs {
		iterations += jobs[i].Iterations
	}
	var rows []study.Row
	p := player{}
	for _, rule := range []string{srsf1, ada, adaOrig} {
		runs, steps := 0, int64(0)
		begin := time.Now()
		for time.Since(begin) < 300*time.Millisecond {
			r, err := p.play(ctx, jobs, shared, lwf1, rule, 0)
			if err != nil {
				return nil, err
			}
			runs++
			steps += r.Steps
		}
		took := time.Since(begin).Seconds()
		rows = append(rows, study.NewRow("speed", "timing_jobs", float64(runs*len(jobs))/took, "rule", rule),
			study.NewRow("speed", "timing_iterations", float64(runs)*float64(iterations)/took, "rule", rule),
			study.NewRow("speed", "timing_steps", float64(steps)/took, "rule", rule))
	}
	return rows, nil
}
