package operate

import (
	"context"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
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
	return options.Beside(context.Background(), a, "metrics", func(ctx context.Context) error {
		return pages.ServeMetrics(ctx, l, tokens, cfg.Metrics)
	}), nil
}
