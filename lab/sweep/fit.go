package sweep

import (
	"context"
	"maps"
	"strings"

	"clustergym/internal/fault"
	"clustergym/lab/arena"
	"clustergym/lab/config"
)

// Fit applies c.Set to base and, if it names a trace or a cluster, sets the sizes that neither given nor c names to
// those that follow from them (arena.Fit); it says which. Where trials differ in workload, cluster or environment,
// sizes stay as they are.
func (c *Config) Fit(ctx context.Context, base *config.Config, given config.Given,
	say func(format string, args ...any)) error {
	set := config.Given{}
	fitted := *base
	for _, kv := range c.Set {
		if err := set.Set(&fitted, kv); err != nil {
			return fault.Mistakef("set: %s: %w", kv, err)
		}
	}
	if !set["trace.file"] && !set["cluster"] {
		return nil
	}
	for key := range c.Space {
		if section, _, _ := strings.Cut(key, "."); section == "trace" || section == "cluster" || key == "env" ||
			key == "env.id" {
			return nil
		}
		set[key] = true
	}
	maps.Copy(set, given)
	_, said, err := arena.Fit(ctx, &fitted, set)
	if err != nil {
		return err
	}
	for _, line := range said {
		say("%s", line)
	}
	*base = fitted
	return nil
}
