package main

import (
	"context"
	"sync"

	"clustergym/experiments/pages"
	"clustergym/experiments/steer"
)

// serve serves the metrics until stop is called.
func (g *steerFlags) serve(a *app, cfg *steer.Config) (stop func(), err error) {
	g.metrics.flag = "metrics"
	l, tokens, err := g.metrics.listen(a)
	if err != nil {
		return nil, err
	}
	cfg.Metrics = new(steer.Metrics)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- pages.ServeMetrics(ctx, l, tokens, cfg.Metrics) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			a.notef("the metrics ended: %v", err)
		}
	}), nil
}
