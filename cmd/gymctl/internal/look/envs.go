package look

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/internal/fault"
	"clustergym/lab/envs"
	"clustergym/lab/report"
	"clustergym/lab/workload"
)

func envsVerb(a *cli.App) *cobra.Command {
	var (
		sets    []string
		cluster string
	)
	c := &cobra.Command{
		Use:   "envs [ID]",
		Short: "List the environments, or print one's page",
		Long: `envs lists the environments with their spaces. envs ID prints the page of one in Markdown: actions,
observations with bounds and units, reward, start, end, arguments. --set changes an argument, and --cluster the
cluster of an environment that has one; the page shows the resulting spaces. Clients of gymctl serve can pass the same
arguments as kwargs.`,
		Example: `  gymctl envs
  gymctl envs JobSelect-v1
  gymctl envs JobSelect-v1 --cluster 4x8 --set visible=16 --set reward=slowdown`,
		Args: cli.Args(0, 1, "one ID, or none"),
		RunE: func(c *cobra.Command, ids []string) error {
			if len(ids) == 0 {
				if len(sets) > 0 || c.Flags().Changed("cluster") {
					return fault.Mistakef("envs: --set and --cluster belong to one environment; want its ID before them, as %s",
						jobselect.ID)
				}
				return listEnvs(a, c)
			}
			hardware := ""
			if c.Flags().Changed("cluster") {
				if hardware = cluster; envs.Find(ids[0]) != nil && !envs.Find(ids[0]).Takes.Cluster {
					return fault.Mistakef("--cluster: %s has no cluster", ids[0])
				}
			}
			e, err := describeEnv(ids[0], hardware, sets)
			if err != nil {
				return err
			}
			if cli.AsJSON(c) {
				return a.JSON(envDocumentOf(e))
			}
			_, err = fmt.Fprintf(a.Stdout, "%s\n", strings.TrimRight(e.Page, "\n")) // Markdown, for a file as well
			return err
		},
		ValidArgsFunction: func(_ *cobra.Command, ids []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(ids) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return envs.IDs(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	completeArguments := func(_ *cobra.Command, ids []string) (cfg configs.Validator) {
		if len(ids) == 1 && envs.Find(ids[0]) != nil {
			_, _ = envs.Describe(ids[0], func(args *envs.Args) error {
				cfg = args
				return nil
			})
		}
		return cfg
	}
	f := c.Flags()
	f.StringArrayVar(&sets, "set", nil, "change an argument: `KEY=VALUE` (repeatable)")
	f.StringVar(&cluster, "cluster", "", options.ClusterForms+"; default: the environment's own")
	f.Bool("json", false, "print the specification as one JSON document")
	options.CompleteSet(c, completeArguments)
	cli.CompleteOrFile(c, "cluster", workload.ClusterPresets()...)
	return c
}

// describeEnv looks up an environment by its ID and applies the arguments in sets, and cluster if it is not "".
func describeEnv(id, cluster string, sets []string) (*envs.Info, error) {
	d := envs.Find(id)
	if d == nil {
		return nil, cli.Unknown("environment", id, envs.IDs())
	}
	if len(sets) > 0 && !d.HasSettings() {
		return nil, fault.Mistakef("--set %s: %s has no arguments", sets[0], id)
	}
	return envs.Describe(id, func(args *envs.Args) error {
		if cluster != "" {
			args.Cluster = cluster
		}
		return options.SetAll(args, sets)
	})
}

func listEnvs(a *cli.App, c *cobra.Command) error {
	var rows [][]string
	docs := []EnvDocument{}
	for _, id := range envs.IDs() {
		e, err := describeEnv(id, "", nil)
		if err != nil {
			return err
		}
		docs = append(docs, envDocumentOf(e))
		var obs []string
		for _, f := range e.Spec.Obs {
			obs = append(obs, fmt.Sprintf("%s %v", f.Name, f.Shape))
		}
		end := "when done"
		if e.Spec.MaxSteps > 0 {
			end = fmt.Sprintf("%d steps", e.Spec.MaxSteps)
		}
		rows = append(rows, []string{id, ActionSpace(e.Spec.Action), strings.Join(obs, ", "), end})
	}
	return a.ShowTable(c, cli.Keyed{"envs": docs}, 4, []string{"environment", "actions", "observations", "ends"}, rows,
		"ends")
}

// ActionSpace describes a space of actions as Gymnasium does.
func ActionSpace(s env.ActionSpec) string {
	switch {
	case len(s.Sizes) == 1:
		return fmt.Sprintf("Discrete(%d)", s.Sizes[0])
	case len(s.Sizes) > 1:
		return fmt.Sprintf("MultiDiscrete(%v)", s.Sizes)
	}
	return fmt.Sprintf("Box(%d)", len(s.Low))
}

// EnvDocument describes one environment in JSON.
type EnvDocument struct {
	ID       string          `json:"id"`
	Actions  []int           `json:"actions"` // sizes of the discrete factors
	Low      []float32       `json:"low"`     // bounds of the continuous dimensions
	High     []float32       `json:"high"`
	Obs      []fieldDocument `json:"obs"`
	Info     []fieldDocument `json:"info"`
	MaxSteps int             `json:"max_steps"` // 0 = none
	Solved   *float64        `json:"solved"`    // mean return; null = undefined
	NoOp     int             `json:"noop"`      // the legal "do nothing"; -1 = none
	TauS     float64         `json:"tau_s"`     // 0 = one discount factor per step

	Kwargs []envs.Kwarg `json:"kwargs"` // the arguments that clients of gymctl serve can pass
}

type fieldDocument struct {
	Name  string   `json:"name"`
	Shape []int    `json:"shape"`
	Low   *float64 `json:"low"` // null = no bound
	High  *float64 `json:"high"`
	Unit  string   `json:"unit"`
	Doc   string   `json:"doc"`
}

func envDocumentOf(e *envs.Info) EnvDocument {
	s := &e.Spec
	return EnvDocument{
		ID: s.ID, Actions: append([]int{}, s.Action.Sizes...), Low: append([]float32{}, s.Action.Low...),
		High: append([]float32{}, s.Action.High...), Obs: fields(s.Obs), Info: fields(s.Info), MaxSteps: s.MaxSteps,
		NoOp: s.NoOp, TauS: s.Tau.Seconds(), Solved: report.Number(s.Solved), Kwargs: e.Kwargs,
	}
}

func fields(fs []env.Field) []fieldDocument {
	out := []fieldDocument{}
	for _, f := range fs {
		out = append(out,
			fieldDocument{f.Name, append([]int{}, f.Shape...), report.Number(float64(f.Low)), report.Number(float64(f.High)),
				f.Unit, f.Doc})
	}
	return out
}
