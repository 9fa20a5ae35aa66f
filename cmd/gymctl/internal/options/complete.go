package options

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/configs"
	"clustergym/env/rollout"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/workload"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
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
	return config.Names(d, config.For(d.ID).Env.Settings).Complete(word)
}

// CompleteSet completes KEY=VALUE: the key one section at a time, then its value if the key is one of names. of returns
// the configuration that is changed.
func CompleteSet(c *cobra.Command, of func(c *cobra.Command, args []string) configs.Validator) {
	cli.CompleteBy(c, "set", func(c *cobra.Command, args []string, typed string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
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
	fixed := func(names ...string) func() []string { return func() []string { return names } }
	names := map[string]func() []string{
		"placement": place.Names, "estimates": EstimateNames, "forecast": fixed("auto", "on", "off"),
		"admission": policyname.Admissions, "backfill": policyname.Backfills, "comm": sim.CommNames,
		"profile": synth.Profiles,
		"mix":     profile.Names, "models": profile.Names, "format": workload.FormatNames, "cluster": workload.ClusterPresets,
		"agent": config.AgentNames, "kernels": config.KernelSets, "objective": fixed(rollout.JCT, rollout.Slowdown),
	}[key[strings.LastIndexByte(key, '.')+1:]]
	if names == nil {
		return nil
	}
	return names()
}

// PresetNames returns the names of all presets: runs, clusters and others.
func PresetNames() []string { return cli.NamesOf(PresetFiles(), PresetName) }
