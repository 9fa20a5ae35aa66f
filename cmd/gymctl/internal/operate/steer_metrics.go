package operate

import (
	"context"
	"sync"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/ops/steer"
	"clustergym/pages"
)

// serve serves the metrics until stop is called.
func (g *SteerFlags) serve(a *cli.App, cfg *steer.Config) (stop func(), err error) {
	g.metrics.Flag = "metrics"
	l, tokens, err := g.metrics.Listen(a)
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
			a.Notef("the metrics ended: %v", err)
		}
	}), nil
}
