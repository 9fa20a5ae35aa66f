package arena

import (
	"context"
	"fmt"
	"strings"

	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/traces"
)

// Fit sets the sizes of cfg's environment that given does not name to those that follow from its workload and cluster
// (envs.Descriptor.Fit), and the number of validation windows to at most those that there are. It returns the scenario,
// so that the workload need not be loaded again, and a sentence for each choice. Environments without a simulated
// workload stay as they are; their scenario is nil.
func Fit(ctx context.Context, cfg *config.Config, given config.Given) (*Scenario, []string, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, &fault.Mistake{Err: err}
	}
	if !cfg.Simulated() {
		return nil, nil, nil
	}
	c := *cfg
	d := c.Descriptor()
	settings, loaded, choices, err := d.Fit(ctx, c.Env.Settings, c.Cluster, c.Trace,
		func(key string) bool { return given[key] })
	if err != nil {
		return nil, nil, err
	}
	c.Env.Settings = settings
	var said []string
	for _, ch := range choices {
		var what []string
		for i, k := range ch.Keys {
			what = append(what, fmt.Sprintf("%s %v", k, ch.Values[i]))
			if k == "trace.mix" {
				c.Trace.Mix = ch.Values[i].(string)
			}
		}
		said = append(said,
			fmt.Sprintf("%s: %s; --set %s=… chooses another", strings.Join(what, " and "), ch.Why, ch.Keys[0]))
	}
	if n := loaded.Count(traces.Validation); n > 0 && n < c.Eval.Validation && !given["eval.validation"] {
		c.Eval.Validation = n
		if !c.Streamed() { // where those windows are not played
			said = append(said, fmt.Sprintf("eval.validation %d: as many windows as there are", n))
		}
	}
	*cfg = c
	return &Scenario{Workload: loaded, About: d, Settings: settings, Trace: loaded.Info}, said, nil
}
