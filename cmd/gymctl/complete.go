package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/configs"
	"clustergym/env/heuristic"
	"clustergym/env/policyname"
	"clustergym/env/rollout"
	"clustergym/env/sim"
	"clustergym/experiments/config"
	"clustergym/experiments/envs"
	"clustergym/experiments/simulate"
	"clustergym/experiments/workload"
	"clustergym/traces/profile"
	"clustergym/traces/synth"
)

// complete sets the shell's completions for the values of a flag.
func complete(c *cobra.Command, flag string, values ...string) {
	completeBy(c, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeOrFile is complete for a flag that also takes the path of a file: where no value fits, the shell offers files.
func completeOrFile(c *cobra.Command, flag string, values ...string) {
	completeBy(c, flag, namesOrFiles(values...))
}

// namesOrFiles completes names, and files where no name fits.
func namesOrFiles(names ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(names, cobra.ShellCompDirectiveDefault)
}

// completeDir makes the shell offer folders for the values of flags.
func completeDir(c *cobra.Command, flags ...string) {
	for _, f := range flags {
		completeBy(c, f, onlyFolders)
	}
}

func onlyFolders(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// oneFile completes the one argument of a verb, a file.
func oneFile(_ *cobra.Command, files []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(files) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

func completeBy(c *cobra.Command, flag string, of cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, of); err != nil {
		panic(fmt.Sprintf("gymctl: completion of --%s: %v", flag, err)) // the flag does not exist, or was completed twice
	}
}

// estimateNames are the values that --estimates and env.estimates begin with, none first.
func estimateNames() []string {
	return []string{"none", "trace", "history", "gbdt", "gbdt:", "exact", "noisy:"}
}

// estimateValues completes --estimates: names, and the shell's files for the model behind gbdt:.
func estimateValues(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if strings.HasPrefix(typed, "gbdt:") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if strings.HasPrefix(typed, "no") && !strings.HasPrefix("none", typed) { // what follows is a number
		return estimateNames(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return estimateNames(), cobra.ShellCompDirectiveNoFileComp
}

// completeList completes each of several values that are joined by commas. of returns the values that may stand in the place
// of word.
func completeList(c *cobra.Command, flag string, of func(c *cobra.Command, word string) []string) {
	completeBy(c, flag, func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		i := strings.LastIndexByte(typed, ',') + 1
		before, word := typed[:i], typed[i:]
		var out []cobra.Completion
		for _, v := range of(c, word) {
			if strings.HasPrefix(v, word) {
				out = append(out, before+v)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

// simPolicies completes sim --policy.
func simPolicies(c *cobra.Command, word string) []string {
	if c.Flags().Changed("peer") {
		return simulate.PeerPolicies(c.Flag("peer").Value.String())
	}
	return rollout.Names().Complete(word)
}

// rivalNames completes eval --policies for the environment that the flags name.
func rivalNames(c *cobra.Command, word string) []string {
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

// completeSet completes KEY=VALUE: the key one section at a time, then its value if the key is one of names. of returns the
// configuration that is changed.
func completeSet(c *cobra.Command, of func(c *cobra.Command, args []string) configs.Validator) {
	completeBy(c, "set", func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
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
		return estimateNames()
	case "forecast":
		return []string{"auto", "on", "off"}
	case "admission":
		return policyname.Admissions()
	case "backfill":
		return policyname.Backfills()
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

// presetNames returns the names of all presets: runs, clusters and others.
func presetNames() []string {
	var names []string
	for _, f := range presetFiles() {
		names = append(names, presetName(f))
	}
	return names
}

// withoutLibrary is put before the script for bash, which otherwise works only where the package bash-completion is loaded.
const withoutLibrary = `# Without the package bash-completion: the words up to the cursor.
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref()
    {
        local line=${COMP_LINE:0:COMP_POINT}
        read -ra words <<<"$line"
        [[ $line == *[[:space:]] ]] && words+=("")
        cword=$((${#words[@]} - 1))
        cur=${words[cword]}
        prev=${words[cword - 1]}
    }
fi

`

// completionVerb finishes the verb that cobra made.
func completionVerb(c *cobra.Command) {
	group(c)
	for _, shell := range c.Commands() {
		if shell.Name() != "bash" {
			continue
		}
		script := shell.RunE
		shell.RunE = func(c *cobra.Command, args []string) error {
			if _, err := fmt.Fprint(c.OutOrStdout(), withoutLibrary); err != nil {
				return err
			}
			return script(c, args)
		}
	}
}
