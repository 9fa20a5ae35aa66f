package options

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/configs"
	"clustergym/env/heuristic"
	"clustergym/env/rollout"
	"clustergym/env/sim"
	"clustergym/experiments/config"
	"clustergym/experiments/envs"
	"clustergym/experiments/workload"
	"clustergym/traces/profile"
	"clustergym/traces/synth"
)

// EstimateNames are the values that --estimates and env.estimates begin with, none first.
func EstimateNames() []string {
	return []string{"none", "trace", "history", "gbdt", "gbdt:", "exact", "noisy:"}
}

// EstimateValues completes --estimates: names, and the shell's files for the model behind gbdt:.
func EstimateValues(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if strings.HasPrefix(typed, "gbdt:") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if strings.HasPrefix(typed, "no") && !strings.HasPrefix("none", typed) { // what follows is a number
		return EstimateNames(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return EstimateNames(), cobra.ShellCompDirectiveNoFileComp
}

// PolicyNames returns the names of policies that may stand in the place of word: orders alone and with one part behind them;
// behind a + all that there are.
func PolicyNames(word string) (names []string) {
	ends := []string{""}
	for _, ad := range heuristic.Admissions() {
		ends = append(ends, "+"+ad)
	}
	for _, fill := range heuristic.Backfills()[1:] { // without none
		ends = append(ends, "+"+fill)
		for _, ad := range heuristic.Admissions() {
			ends = append(ends, "+"+ad+"+"+fill)
		}
	}
	for _, order := range heuristic.Orders() {
		for _, end := range ends {
			if strings.Count(end, "+") > 1 && strings.Count(word, "+") == 0 {
				continue
			}
			if heuristic.Exists(order + end) {
				names = append(names, order+end)
			}
		}
	}
	return names
}

// RivalNames completes eval --policies for the environment that the flags name.
func RivalNames(c *cobra.Command, word string) []string {
	id := config.Default().Env.ID
	if f := c.Flags().Lookup("env"); f.Changed {
		id = f.Value.String()
	}
	d := envs.Find(id)
	if d == nil {
		return nil
	}
	names := []string{}
	for _, r := range d.RuleNames() {
		if d.Scheduling() {
			r += "@slots"
		}
		names = append(names, r)
	}
	for _, p := range d.Planners {
		names = append(names, p.Name)
	}
	if !d.Simulated() {
		return names
	}
	// The prefixed forms of a policy are offered once the prefix is there: before, the prefix alone.
	prefix := ""
	if p, base, ok := strings.Cut(word, ":"); ok && slices.Contains(config.Prefixes(), p+":") {
		prefix, word = p+":", base
	} else {
		names = append(names, config.Prefixes()...)
	}
	all := PolicyNames(word)
	for _, r := range d.RuleNames() {
		if prefix != "" {
			all = append(all, r+"@slots")
		}
	}
	for _, n := range all {
		if _, err := config.ParseRival(prefix+n, d, config.For(d.ID).Env.Settings); err == nil {
			names = append(names, prefix+n)
		}
	}
	return names
}

// CompleteSet completes KEY=VALUE: the key one section at a time, then its value if the key is one of names. of returns the
// configuration that is changed.
func CompleteSet(c *cobra.Command, of func(c *cobra.Command, args []string) configs.Validator) {
	cli.CompleteBy(c, "set", func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		cfg := of(c, args)
		if cfg == nil {
			return nil, directive
		}
		if key, _, ok := strings.Cut(typed, "="); ok {
			var out []cobra.Completion
			for _, v := range valuesOf(key) {
				if strings.HasPrefix(key+"="+v, typed) {
					out = append(out, key+"="+v)
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		}
		section := typed[:strings.LastIndexByte(typed, '.')+1]
		var out []cobra.Completion
		for _, key := range configs.AllKeys(cfg) {
			if !strings.HasPrefix(key, typed) {
				continue
			}
			end := "="
			if i := strings.IndexByte(key[len(section):], '.'); i >= 0 {
				key, end = key[:len(section)+i], "."
			}
			if !slices.Contains(out, key+end) {
				out = append(out, key+end)
			}
		}
		return out, directive
	})
}

// valuesOf returns the names that a key takes, by its last part, nil if they are not known.
func valuesOf(key string) []string {
	switch key[strings.LastIndexByte(key, '.')+1:] {
	case "placement":
		return heuristic.PlacementNames()
	case "estimates":
		return EstimateNames()
	case "forecast":
		return []string{"auto", "on", "off"}
	case "admission":
		return heuristic.Admissions()
	case "backfill":
		return heuristic.Backfills()
	case "comm":
		return sim.CommNames()
	case "profile":
		return synth.Profiles()
	case "mix", "models":
		return profile.Names()
	case "format":
		return workload.FormatNames()
	case "cluster":
		return workload.ClusterPresets()
	case "agent":
		return config.AgentNames()
	case "kernels":
		return config.KernelSets()
	case "objective":
		return []string{rollout.JCT, rollout.Slowdown}
	}
	return nil
}

// PresetNames returns the names of all presets: runs, clusters and others.
func PresetNames() []string {
	var names []string
	for _, f := range PresetFiles() {
		names = append(names, PresetName(f))
	}
	return names
}
