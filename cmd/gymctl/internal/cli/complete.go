package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// NamesOf returns the names of things, or others of their parts.
func NamesOf[T, N any](list []T, name func(T) N) []N {
	names := make([]N, len(list))
	for i, x := range list {
		names[i] = name(x)
	}
	return names
}

// Complete sets the shell's completions for the values of a flag.
func Complete(c *cobra.Command, flag string, values ...string) {
	CompleteBy(c, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteOrFile is complete for a flag that also takes the path of a file: where no value fits, the shell offers
// files.
func CompleteOrFile(c *cobra.Command, flag string, values ...string) {
	CompleteBy(c, flag, NamesOrFiles(values...))
}

// NamesOrFiles completes names, and files where no name fits.
func NamesOrFiles(names ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(names, cobra.ShellCompDirectiveDefault)
}

// CompleteDir makes the shell offer folders for the values of flags.
func CompleteDir(c *cobra.Command, flags ...string) {
	for _, f := range flags {
		CompleteBy(c, f, OnlyFolders)
	}
}

// OnlyFolders makes the shell offer folders.
func OnlyFolders(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// OneFile completes the one argument of a verb, a file.
func OneFile(_ *cobra.Command, files []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(files) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// CompleteBy sets what offers the values of a flag.
func CompleteBy(c *cobra.Command, flag string, of cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, of); err != nil {
		panic(fmt.Sprintf("gymctl: completion of --%s: %v", flag, err)) // the flag does not exist, or was completed twice
	}
}

// CompleteList completes each of several values that are joined by commas. of returns the values that may stand in the
// place of word.
func CompleteList(c *cobra.Command, flag string, of func(c *cobra.Command, word string) []string) {
	CompleteBy(c, flag, func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
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

// withoutLibrary is put before the script for bash, which otherwise works only where the package bash-completion is
// loaded.
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
	Parent(c)
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
