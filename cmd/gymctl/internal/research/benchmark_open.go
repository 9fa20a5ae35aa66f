package research

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/internal/safefile"
	"clustergym/lab/benchmark"
)

// againFlags are the flags of verbs that play a row again.
type againFlags struct{ benchmarkPlay }

// ofRow are the flags of benchmarkPlay that the row says.
var ofRow = []string{"name", "policy", "set", "budget", "tasks"}

func (g *againFlags) flags(c *cobra.Command) {
	g.benchmarkPlay.flags(c)
	for _, name := range ofRow {
		c.Flags().Lookup(name).Hidden = true
	}
	cli.JSONFlag(c)
}

// again plays the policy of a row in a folder of its own in -o DIR, on the windows of secret, nil = the development
// windows.
func (g *againFlags) again(a *cli.App, c *cobra.Command, v *benchmark.Version, row *benchmark.Row,
	secret *benchmark.Secret) (*benchmark.Results, error) {
	if name := options.Changed(c, ofRow...); name != "" {
		return nil, fault.Mistakef("--%s: the row says what plays", name)
	}
	p := g.benchmarkPlay
	p.policy.Name = row.Policy.Name
	p.tasks = cli.NamesOf(row.Tasks, taskOf)
	own := row.Policy
	q, err := &own, error(nil)
	switch kind := row.Policy.Kind; {
	case kind == benchmark.KindRule:
		q.Rules = nil // by name, so that another best rule changes nothing
		for _, t := range row.Tasks {
			q.Rules = append(q.Rules, t.Task+"="+t.Policy)
		}
	case kind == benchmark.KindCheckpoint && len(p.policy.Dirs) == 0:
		return nil, fault.Mistakef("row %s is of agents: want their runs by --checkpoint DIR", row.Policy.Name)
	case kind == benchmark.KindModel && len(p.policy.Models) == 0:
		return nil, fault.Mistakef("row %s is of models: want their files by --policy-onnx", row.Policy.Name)
	case kind == benchmark.KindExternal && len(p.external.Names) == 0:
		return nil, fault.Mistakef("row %s is of a program: want --serve and --external, and what it plays with by --file",
			row.Policy.Name)
	default:
		if q, err = p.read(a, c); err != nil {
			return nil, err
		}
	}
	if row.Kernels != "" && !c.Flags().Changed("kernels") {
		p.opt.Kernels = row.Kernels // sets differ in the last bits, and so in actions
	}
	split := benchmark.Development
	if p.opt.Secret = secret; secret != nil {
		split = benchmark.Sealed
	}
	if p.opt.Dir != "" {
		p.opt.Dir = filepath.Join(p.opt.Dir, split)
	}
	return p.play(a, c, v, q)
}

func taskOf(t benchmark.TaskResult) string { return t.Task }

func benchmarkVerifyVerb(a *cli.App) *cobra.Command {
	var again againFlags
	var replay bool
	c := &cobra.Command{
		Use:   "verify ROW",
		Short: "Check a row of submit, and play it again",
		Long: `verify checks the hash of a row, those of its tasks, the numbers of its runs and windows, that no value is better than any policy
can be, and what can be seen of the protocol. That is not much: numbers that were made up have matching hashes too.
With --replay it also plays the policy again on the development windows and compares every value; a row of agents needs their
runs (--checkpoint), one of models their files (--policy-onnx), and one of a program the program (--serve, --external, --file).`,
		Example: `  gymctl benchmark verify ours.json
  gymctl benchmark verify ours.json --replay --checkpoint runs/ours -o runs/again`,
		Args: cli.Args(1, 1, "one ROW"),
		RunE: func(c *cobra.Command, names []string) error {
			v, err := again.version()
			if err != nil {
				return err
			}
			row, err := v.ReadRow(names[0])
			if err != nil {
				return err
			}
			if replay {
				r, err := again.again(a, c, v, row, nil)
				if err != nil {
					return err
				}
				if err := row.Compare(r); err != nil {
					return err
				}
			}
			type verified struct {
				Row      string `json:"row"`
				Digest   string `json:"digest"`
				Tasks    int    `json:"tasks"`
				Replayed bool   `json:"replayed"`
			}
			what := benchmark.NotReplayed + ": its hashes match, and that is all that was checked; --replay plays it again"
			if replay {
				what = "verified: its hashes match, and playing it again gives the same values"
			}
			return a.Show(c, verified{row.Policy.Name, row.Digest, len(row.Tasks), replay}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "row %s, %s: %s\n", row.Policy.Name, plain.Count(len(row.Tasks), "task", "tasks"), what)
				return err
			})
		},
	}
	again.flags(c)
	c.Flags().BoolVar(&replay, "replay", false, "play the policy again on the development windows and compare")
	cli.Needs(c, []string{"out"}, "replay")
	options.Sections(c)
	return c
}

// openOptions are the flags of benchmark open.
type openOptions struct {
	againFlags
	secret, references, board string
}

func benchmarkOpenVerb(a *cli.App) *cobra.Command {
	o := &openOptions{}
	c := &cobra.Command{
		Use:   "open ROW",
		Short: "Play a row on the sealed windows and put it into the leaderboard",
		Long: `open is for those who have the secret seed of the version (--secret), and for everybody once the version is closed. It checks the
row as verify --replay does and the seed against the version's commitment, plays the policy on the sealed windows, and puts its
scores into the leaderboard. Scores refer to random play and the best rule on the same windows, which --references has (record
makes it); rounded scores are all that leaves this machine. A row of the same name, kind and author is replaced.

-o DIR keeps what was played; start with a folder of your own. What it has of sealed windows counts only if it was played with
the secret.`,
		Example: `  gymctl benchmark open ours.json --secret ~/bench-secret --references ~/bench-references.json --checkpoint runs/ours \
    -o runs/opened --leaderboard experiments/benchmark/leaderboard.json`,
		Args: cli.Args(1, 1, "one ROW"),
		RunE: func(c *cobra.Command, names []string) error { return o.run(a, c, names[0]) },
	}
	o.flags(c)
	f := c.Flags()
	f.StringVar(&o.secret, "secret", "",
		"`FILE` of the secret seed, outside of the repository; not needed once the version is closed")
	f.StringVar(&o.references, "references", "", "`FILE` of record --split sealed: what sealed scores refer to")
	f.StringVar(&o.board, "leaderboard", "", "`FILE` of the leaderboard, which gets the row")
	cli.One(c, "references")
	cli.One(c, "leaderboard")
	cli.One(c, "out")
	options.Sections(c)
	return c
}

func (o *openOptions) run(a *cli.App, c *cobra.Command, name string) error {
	v, err := o.version()
	if err != nil {
		return err
	}
	row, err := v.ReadRow(name)
	if err != nil {
		return err
	}
	secret, err := v.Sealed(o.secret)
	if err != nil {
		return err
	}
	refs, err := v.ReadReferences(o.references)
	if err != nil {
		return err
	}
	b, err := benchmark.ReadBoard(o.board)
	if err == nil {
		err = b.Takes(row)
	}
	if err != nil {
		return err
	}
	dev, err := v.Entry(&row.Results)
	if err != nil {
		return err
	}
	r, err := o.played(a, c, v, row, &secret)
	if err != nil {
		return err
	}
	of := func(task string) (benchmark.Reference, bool) {
		ref, ok := refs[task]
		return ref, ok
	}
	e := benchmark.Entry{Name: row.Policy.Name, Kind: row.Policy.Kind, Numbers: benchmark.PlayedNow, CI95: r.Intervals(of)}
	if e.Scores, err = r.Scores(of); err != nil {
		return err
	}
	b.Put(row, dev, e, a.Now())
	if err := b.Write(o.board); err != nil {
		return err
	}
	tasks, err := v.Match(cli.NamesOf(row.Tasks, taskOf)...)
	if err != nil {
		return err
	}
	return benchmarkReport(a, c, v, benchmark.Sealed, tasks, []benchmark.Entry{e}, "")
}

// played plays a row on the sealed windows, once it has given the row's values on the development windows: nobody
// else has seen that they are true.
func (o *openOptions) played(a *cli.App, c *cobra.Command, v *benchmark.Version, row *benchmark.Row,
	secret *benchmark.Secret) (*benchmark.Results, error) {
	shown, err := o.again(a, c, v, row, nil)
	if err != nil {
		return nil, err
	}
	if err := row.Compare(shown); err != nil {
		return nil, err
	}
	r, err := o.again(a, c, v, row, secret)
	if err == nil && !row.PlayedBy(r) {
		err = fault.Mistakef("row %s: its policy's hash is %.12s…, and what was played now has %.12s…: it is another policy",
			row.Policy.Name, row.Hash, r.Hash)
	}
	return r, err
}

func benchmarkSealVerb(a *cli.App) *cobra.Command {
	var secretFile string
	var version func() (*benchmark.Version, error)
	c := &cobra.Command{
		Use:   "seal",
		Short: "Draw the secret seed of a new version, or reveal that of a closing one",
		Long: `seal draws a salt and a seed, writes them to --secret FILE, which only its owner can read, and prints their SHA-256: the
commitment that the file of a new version has. A file that is there already is never replaced: seal then prints its lines for
the file of the version that closes, if they belong to the commitment (docs/evidence/benchmark.md).`,
		Example: `  gymctl benchmark seal --secret ~/bench-secret`,
		RunE: func(*cobra.Command, []string) error {
			s := benchmark.Draw()
			if err := s.Write(secretFile); err != nil {
				v, e := version()
				if e != nil {
					return e
				}
				had, e := benchmark.ReadSecret(secretFile)
				if e != nil {
					return err
				}
				if e := v.Check(&had); e != nil {
					return e
				}
				a.Printf("state: %s\ncommitment: %s\n%s", benchmark.Closed, had.Commitment(), had.Text())
				return nil
			}
			a.Printf("commitment: %s\n", s.Commitment())
			return nil
		},
	}
	version = versionFlag(c)
	c.Flags().StringVar(&secretFile, "secret", "", "`FILE` of the secret seed, outside of the repository")
	cli.One(c, "secret")
	return c
}

func benchmarkRulesVerb(a *cli.App) *cobra.Command {
	var opt benchmark.Options
	var tasks []string
	var secret, split string
	var version func() (*benchmark.Version, error)
	c := &cobra.Command{
		Use:   "rules",
		Short: "Play random play and every rule of tasks",
		Long: `rules plays random play and all rules of the tasks that --tasks chooses, each into a folder of -o DIR by the rule's name: what
run makes of each of them, in less time. record takes the folders. Ctrl-C ends with exit code 130, and the same command continues.`,
		Example: `  gymctl benchmark rules -o runs/rules
  gymctl benchmark rules --tasks 'queuerank-*' -o runs/rules`,
		RunE: func(c *cobra.Command, _ []string) error {
			v, err := version()
			if err != nil {
				return err
			}
			if opt.Tasks, err = v.Match(tasks...); err != nil {
				return err
			}
			if opt.Secret, err = secretOf(v, split, secret); err != nil {
				return err
			}
			opt.Say = a.Say
			all, err := v.PlayRules(c.Context(), opt)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, r := range all {
				rows = append(rows, []string{r.Policy.Name, fmt.Sprint(len(r.Tasks))})
			}
			return a.Table(1, []string{"rule", "tasks"}, rows)
		},
	}
	f := c.Flags()
	f.StringVarP(&opt.Dir, "out", "o", "", "`DIR` that keeps the results; what is there is not played again")
	version = versionFlag(c)
	tasksFlag(c, &tasks)
	options.WorkersFlag(c, &opt.Workers)
	splitFlag(c, &split)
	f.StringVar(&secret, "secret", "", "`FILE` of the secret seed, with --split sealed")
	cli.One(c, "out")
	cli.CompleteDir(c, "out")
	return c
}

func benchmarkRecordVerb(a *cli.App) *cobra.Command {
	var out, split string
	var version func() (*benchmark.Version, error)
	c := &cobra.Command{
		Use:   "record DIR...",
		Short: "Record what the scores of a version refer to",
		Long: `record takes folders of run with all rules and random play on one split, and writes the mean of random play and of
the best rule of each task. On development windows the best rule is chosen; on sealed ones it is the rule that was
chosen. It is for those who make a version.`,
		Example: `  gymctl benchmark record runs/rules/* -o experiments/benchmark/references.json
  gymctl benchmark record runs/sealed-rules/* --split sealed -o ~/bench-references.json`,
		Args: cli.Args(1, math.MaxInt, "folders of gymctl benchmark run"),
		RunE: func(_ *cobra.Command, dirs []string) error {
			v, err := version()
			if err != nil {
				return err
			}
			var all []*benchmark.Results
			for _, d := range dirs {
				r, err := v.ReadResults(d)
				if err != nil {
					return err
				}
				if r.Split != split {
					return fault.Mistakef("%s has results on %s windows, want --split %s", d, r.Split, r.Split)
				}
				all = append(all, r)
			}
			best := map[string]benchmark.Reference(nil)
			if split == benchmark.Sealed {
				best = v.References()
			}
			refs, err := v.NewReferences(all, best)
			if err != nil {
				return err
			}
			if err := safefile.WriteJSON(out, refs); err != nil {
				return err
			}
			var absent []string
			for _, name := range v.Names() {
				t, err := v.Task(name)
				if err != nil {
					return err
				}
				if _, ok := refs[name]; !ok && (split == benchmark.Development || t.Track != benchmark.Recorded) {
					absent = append(absent, name)
				}
			}
			slices.Sort(absent)
			a.Printf("%s: %s of %d\n", out, plain.Count(len(refs), "task", "tasks"), len(v.Tasks))
			if absent != nil {
				return fmt.Errorf("there are no results of rules and random play for %s", strings.Join(absent, ", "))
			}
			return nil
		},
	}
	version = versionFlag(c)
	f := c.Flags()
	f.StringVarP(&out, "out", "o", "", "`FILE` of the references")
	cli.One(c, "out")
	splitFlag(c, &split)
	return c
}
