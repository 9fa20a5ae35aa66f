// Package cli is the frame of the command line: the root command and its help, output and notes, the status line of a
// terminal, exit codes, and errors of flags in one sentence.
package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"clustergym/agents/checkpoint"
	"clustergym/internal/fault"
	"clustergym/internal/logging"
	"clustergym/internal/nearest"
	"clustergym/internal/texttable"
	"clustergym/lab/workload"
	"clustergym/traces"
)

// Main is the program: it carries out args until they are done or a signal comes, and returns the exit code.
func Main(args []string, stdout, stderr io.Writer, groups []Group) int {
	// Otherwise the first write to a pipe without a reader would kill the program before it could clean up.
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		cancel()
		// A second signal ends the program at once. Slurm sends SIGTERM to the job and to its step, so that one comes twice.
		signal.Reset(os.Interrupt)
		if first == syscall.SIGTERM {
			time.Sleep(time.Second)
		}
		signal.Reset(syscall.SIGTERM)
	}()
	return Execute(ctx, args, stdout, stderr, groups)
}

// The exit codes.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitMistake     = 2 // made by the user: in a flag, a file or a value
	ExitInterrupted = 130
)

// Verb makes a verb of the program.
type Verb = func(*App) *cobra.Command

// Group is a section of the list of verbs in the program's help.
type Group struct {
	Title string
	Verbs []Verb
}

// App is the state shared by all verbs.
type App struct {
	Stdout *Output   // results, and nothing else
	Stderr io.Writer // notes, progress, errors
	Now    func() time.Time
	queue  *logging.Writer // what stderr is after unblock; nil before
	page   *texttable.Page // what people makes of stdout on a terminal; nil before
}

// Execute is mainWith without signals: if ctx is cancelled, it cleans up and returns 130. It writes results to stdout
// and everything else to stderr.
func Execute(ctx context.Context, args []string, stdout, stderr io.Writer, groups []Group) int {
	a := &App{Stdout: &Output{W: stdout}, Stderr: &Locked{W: stderr}, Now: time.Now}
	root := NewRoot(a, groups)
	root.SetArgs(append([]string{}, args...)) // cobra takes os.Args in place of nil
	defer a.flush()
	ctx = workload.WithNotes(ctx, a.noting())
	if len(args) == 0 || args[0] != "trace" { // trace shows and converts whatever jobs say
		ctx = workload.Playing(ctx)
	}
	err := root.ExecuteContext(ctx)
	if a.page != nil {
		_ = a.page.Flush() // a.stdout keeps its first error
	}
	switch {
	case errors.Is(a.Stdout.err, syscall.EPIPE):
		return ExitDone // the reader of the output has seen enough
	case a.Stdout.err != nil:
		a.Notef("the output cannot be written: %v", a.Stdout.err)
		return ExitFailed
	case err == nil:
		return ExitDone
	case errors.Is(err, fault.ErrInterrupted): // the error says what is saved and how to continue
		a.Notef("%s", Said(err))
		return ExitInterrupted
	case errors.Is(err, context.Canceled):
		a.Notef("interrupted")
		return ExitInterrupted
	}
	for _, line := range strings.Split(Said(err), "\n") {
		if line != "" {
			a.Notef("%s", line)
		}
	}
	if IsMistake(err) {
		return ExitMistake
	}
	return ExitFailed
}

// Said returns the text of err as a user of the command line reads it: keys that packages name are flags.
func Said(err error) string {
	return fault.Text(err, func(k fault.Key) string { return "--" + string(k) })
}

// IsMistake distinguishes the user's mistakes from failures of the program or the machine.
func IsMistake(err error) bool {
	_, row := errors.AsType[*traces.RowError](err)
	ofFile := []error{fs.ErrNotExist, checkpoint.ErrDamaged, checkpoint.ErrMismatch, checkpoint.ErrNone,
		checkpoint.ErrParts}
	return row || fault.IsMistake(err) || len(fault.All(err)) > 0 ||
		slices.ContainsFunc(ofFile, func(e error) bool { return errors.Is(err, e) })
}

// NewRoot builds the tree of commands.
func NewRoot(a *App, groups []Group) *cobra.Command {
	root := Parent(&cobra.Command{
		Use:   "gymctl",
		Short: "Learn, compare and trust schedulers for GPU clusters",
		Long: `gymctl simulates workloads on clusters of GPUs, trains schedulers on them, and compares the trained schedulers
with heuristics from the literature.

Results go to standard output, as tables for people or, with --json, as one JSON document; everything else goes to
standard error. Exit codes: 0 done, 1 failed, 2 a mistake in a flag, file or value, 130 interrupted.`,
		Example: `  gymctl sim --policy fifo,sjf,srtf
  gymctl trace stats --help
  gymctl envs JobSelect-v1`,
	})
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = About().String()
	root.SetVersionTemplate("{{.Version}}")
	root.Flags().Bool("version", false, "print what gymctl version prints") // without cobra's letter for it
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(flagMistake)
	root.SetUsageTemplate(usage)
	root.PersistentPreRunE = checkRules
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.SetOut(a.People())
		help(c, args)
	})
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title + ":"})
		for _, v := range g.Verbs {
			c := v(a)
			c.GroupID = g.Title
			root.AddCommand(c)
		}
	}
	root.SetHelpCommand(helpVerb())
	if n := len(groups); n > 0 {
		root.SetHelpCommandGroupID(groups[n-1].Title)
		root.SetCompletionCommandGroupID(groups[n-1].Title)
	}
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			completionVerb(c)
		} else {
			flagsOnly(c)
		}
	}
	return root
}

// flagsOnly lets c and the verbs below it take flags only, unless they say which arguments they take.
func flagsOnly(c *cobra.Command) {
	if c.Args == nil && len(c.ValidArgs) == 0 && c.ValidArgsFunction == nil {
		c.Args = Args(0, 0, "flags only")
	}
	for _, s := range c.Commands() {
		flagsOnly(s)
	}
}

// Parent makes c a command that only has subcommands: alone it prints its help, and for an unknown subcommand it
// suggests the nearest one.
func Parent(c *cobra.Command) *cobra.Command {
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownVerb(c, args[0])
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return c
}

func unknownVerb(c *cobra.Command, name string) error {
	available := slices.DeleteFunc(slices.Clone(c.Commands()),
		func(s *cobra.Command) bool { return !s.IsAvailableCommand() })
	names := NamesOf(available, (*cobra.Command).Name)
	slices.Sort(names)
	return Unknown(VerbName(c)+"verb", name, names)
}

// helpVerb is gymctl help.
func helpVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "Print the help of a verb",
		RunE: func(c *cobra.Command, args []string) error {
			verb, rest, err := c.Root().Find(args)
			if err != nil {
				return fault.Mistakef("help: %w", err)
			}
			if len(rest) > 0 {
				return unknownVerb(verb, rest[0])
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		},
	}
}

// Unknown returns the error that what called name does not exist, with a suggestion or the valid names.
func Unknown(what, name string, names []string) error {
	if near := nearest.Name(name, names); near != "" {
		return fault.Mistakef("%s %q is unknown; did you mean %s?", what, name, near)
	}
	return fault.Mistakef("%s %q is unknown, want one of %s", what, name, strings.Join(names, ", "))
}

// Args checks the number of arguments after a verb; what describes them, as "one FILE".
func Args(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			if len(args) == 0 {
				return fault.Mistakef("%swant %s; see %s --help", VerbName(c), what, c.CommandPath())
			}
			return fault.Mistakef("%sgot %s, want %s; see %s --help", VerbName(c), quoted(args), what, c.CommandPath())
		}
		return nil
	}
}

func quoted(args []string) string { return strings.Join(NamesOf(args, strconv.Quote), " ") }
