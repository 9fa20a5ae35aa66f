package estimates

import (
	"context"

	"clustergym/experiments/study"
)

// cells returns the study's units of work: for each log and each kind of knowledge the quality of its estimates, the
// whole log, and windows of it.
func (s *settings) cells(p study.Plan) ([]study.Cell, error) {
	logs, _, err := s.given(p)
	if err != nil {
		return nil, err
	}
	var all []study.Cell
	for i := range logs {
		o := &logs[i]
		digest, err := o.digest(context.Background())
		if err != nil {
			return nil, err
		}
		l, err := o.load(context.Background())
		if err != nil {
			return nil, err
		}
		add := func(what, known string, units any,
			run func(context.Context, *study.Bench, string, *log, string) ([]study.Row, error)) {
			all = append(all, study.Cell{
				Key: what + "/" + o.Name + "/" + keyOf(known),
				Input: map[string]any{"method": method, "digest": digest, "jobs": o.Jobs, "cluster": o.Cluster, "load": o.Load,
					"units": units, "seeds": s.seedsOf(known)},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					return run(ctx, b, o.Name, l, known)
				},
			})
		}
		for _, known := range ladder {
			if known == knowRequested && !l.requested {
				continue
			}
			if known != knowNone && known != knowExact {
				add("quality", known, []any{s.Blocks, s.Splits}, s.measureQuality)
			}
			if known != knowOnce { // which begins in the middle
				add("whole", known, s.Blocks, s.playWhole)
			}
			add("windows", known, s.Windows, s.playWindows)
		}
	}
	return all, nil
}
