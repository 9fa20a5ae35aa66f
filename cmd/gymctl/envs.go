package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/jobselect"
	"clustergym/experiments"
	"clustergym/traces"
)

func envsVerb(a *app) *cobra.Command {
	var (
		sets    []string
		cluster string
		asJSON  bool
	)
	c := &cobra.Command{
		Use:   "envs [ID]",
		Short: "List the environments, or print one's page",
		Long: `envs lists the environments with their spaces. envs ID prints the page of one in Markdown: actions,
observations with bounds and units, reward, start, end, arguments. --set changes an argument of ` + jobselect.ID + ` and
--cluster its cluster, and the page shows what becomes of the spaces.`,
		Example: `  gymctl envs
  gymctl envs JobSelect-v1
  gymctl envs JobSelect-v1 --cluster 4x8 --set visible=16 --set reward=slowdown`,
		Args: args(0, 1, "one ID, or none"),
		RunE: func(c *cobra.Command, ids []string) error {
			if len(ids) == 0 {
				if len(sets) > 0 || c.Flags().Changed("cluster") {
					return mistake("envs: --set and --cluster belong to one environment; want its ID before them, as %s", jobselect.ID)
				}
				return a.listEnvs(asJSON)
			}
			e, err := findEnv(ids[0], cluster, sets)
			if err != nil {
				return err
			}
			if ids[0] != jobselect.ID && c.Flags().Changed("cluster") {
				return mistake("--cluster: %s has no cluster", ids[0])
			}
			if asJSON {
				return a.json(specDocument(e.spec))
			}
			a.printf("%s\n", strings.TrimRight(e.page, "\n"))
			return nil
		},
		ValidArgs: envIDs(),
	}
	f := c.Flags()
	f.StringArrayVar(&sets, "set", nil, "change an argument: `KEY=VALUE` (repeatable)")
	f.StringVar(&cluster, "cluster", defaultCluster, clusterForms)
	f.BoolVar(&asJSON, "json", false, "print the specification as one JSON document")
	complete(c, "cluster", experiments.ClusterPresets()...)
	return c
}

// defaultCluster is that of JobSelect-v1.
const defaultCluster = "topdrl-2x4x4"

func envIDs() []string { return append([]string{jobselect.ID}, control.IDs()...) }

// environment is one registered environment.
type environment struct {
	spec env.Spec
	page string
}

// findEnv looks an environment up by its ID and gives it the arguments in sets.
func findEnv(id, cluster string, sets []string) (environment, error) {
	if id == jobselect.ID {
		return jobSelect(cluster, sets)
	}
	for _, known := range control.IDs() {
		if id != known {
			continue
		}
		if len(sets) > 0 {
			return environment{}, mistake("--set %s: %s has no arguments", sets[0], id)
		}
		e, err := control.New(id)
		if err != nil {
			return environment{}, err
		}
		defer e.Close() //nolint:errcheck // it holds nothing
		return environment{e.Spec(), control.Page(id)}, nil
	}
	return environment{}, unknown("environment", id, envIDs())
}

// noWorkload stands where an environment that is only asked for its spaces wants a workload.
type noWorkload struct{}

// At implements sched.Windows.
func (noWorkload) At(traces.Part, uint64, int) (warm, counted []traces.Job, first int, err error) {
	return nil, nil, 0, errors.New("there is no workload")
}

// jobSelect describes JobSelect-v1 with a configuration and a cluster.
func jobSelect(cluster string, sets []string) (environment, error) {
	cfg := jobselect.DefaultConfig()
	if err := setAll(&cfg, sets); err != nil {
		return environment{}, err
	}
	if err := cfg.Validate(); err != nil {
		return environment{}, &experiments.InputError{Err: err}
	}
	spec, err := experiments.ClusterSpec(cluster)
	if err != nil {
		return environment{}, err
	}
	e, err := jobselect.New(cfg, spec, noWorkload{}, traces.Training)
	if err != nil {
		return environment{}, &experiments.InputError{Err: err}
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	return environment{e.Spec(), jobselect.Page(cfg, e.Spec())}, nil
}

func (a *app) listEnvs(asJSON bool) error {
	var rows [][]string
	docs := []envDocument{}
	for _, id := range envIDs() {
		e, err := findEnv(id, defaultCluster, nil)
		if err != nil {
			return err
		}
		docs = append(docs, specDocument(e.spec))
		var obs []string
		for _, f := range e.spec.Obs {
			obs = append(obs, fmt.Sprintf("%s %v", f.Name, f.Shape))
		}
		end := "when done"
		if e.spec.MaxSteps > 0 {
			end = fmt.Sprintf("%d steps", e.spec.MaxSteps)
		}
		rows = append(rows, []string{id, actionSpace(e.spec.Action), strings.Join(obs, ", "), end})
	}
	if asJSON {
		return a.json(struct {
			Envs []envDocument `json:"envs"`
		}{docs})
	}
	return a.table(4, []string{"environment", "actions", "observations", "ends"}, rows)
}

func actionSpace(s env.ActionSpec) string {
	switch {
	case len(s.Sizes) == 1:
		return fmt.Sprintf("Discrete(%d)", s.Sizes[0])
	case len(s.Sizes) > 1:
		return fmt.Sprintf("MultiDiscrete(%v)", s.Sizes)
	}
	return fmt.Sprintf("Box(%d)", len(s.Low))
}

// envDocument is one environment in JSON.
type envDocument struct {
	ID       string          `json:"id"`
	Actions  []int           `json:"actions"` // sizes of the discrete factors
	Low      []float32       `json:"low"`     // bounds of the continuous dimensions
	High     []float32       `json:"high"`
	Obs      []fieldDocument `json:"obs"`
	Info     []fieldDocument `json:"info"`
	MaxSteps int             `json:"max_steps"` // 0 = none
	Solved   *float64        `json:"solved"`    // mean return, null = none
	NoOp     int             `json:"noop"`      // legal "do nothing", -1 = none
	TauS     float64         `json:"tau_s"`     // 0 = one discount factor per step
}

type fieldDocument struct {
	Name  string   `json:"name"`
	Shape []int    `json:"shape"`
	Low   *float64 `json:"low"` // null = no bound
	High  *float64 `json:"high"`
	Unit  string   `json:"unit"`
	Doc   string   `json:"doc"`
}

func specDocument(s env.Spec) envDocument {
	d := envDocument{
		ID: s.ID, Actions: append([]int{}, s.Action.Sizes...), Low: append([]float32{}, s.Action.Low...),
		High: append([]float32{}, s.Action.High...), Obs: fields(s.Obs), Info: fields(s.Info), MaxSteps: s.MaxSteps,
		NoOp: s.NoOp, TauS: s.Tau.Seconds(), Solved: finite(s.Solved),
	}
	return d
}

func fields(fs []env.Field) []fieldDocument {
	out := []fieldDocument{}
	for _, f := range fs {
		out = append(out, fieldDocument{f.Name, append([]int{}, f.Shape...), finite(float64(f.Low)), finite(float64(f.High)), f.Unit, f.Doc})
	}
	return out
}

// finite is v where JSON has a number for it.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
