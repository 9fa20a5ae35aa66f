package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/plain"
	"clustergym/internal/rng"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/traces"
)

const (
	// sampledWindows is how many training windows are played to count choices, and sampledSteps the decisions after which
	// a window counts as it is.
	sampledWindows = 16
	sampledSteps   = 20_000
	// fewChoices is the median of choices in a window below which training is warned of: docs/guides/train.md has the
	// measurement.
	fewChoices = 10
)

// Choices returns how many decisions with a choice each of a sample of training windows has under a simple rule of the
// environment. A decision has a choice if more than one action is legal besides doing nothing; where there are only two
// actions, both must be legal. The sample follows from the workload alone. It is empty for environments whose actions
// are not single numbers.
func (w *Scenario) Choices(ctx context.Context, gamma float64) ([]int, error) {
	e, err := w.NewEnv(traces.Training, gamma)
	if err != nil {
		return nil, err
	}
	if len(e.Spec().Action.Sizes) != 1 || len(e.Spec().Action.Low) > 0 {
		return nil, nil
	}
	policy, err := w.simpleRule().Policy(e)
	if err != nil {
		return nil, err
	}
	c := &choiceCounter{Arena: e, about: w.About}
	player := agents.NewPlayer(c, policy)
	var all []int
	seed := rng.Hash("run/choices")
	for i := range sampledWindows {
		ep := env.Episode{Seed: env.EpisodeSeed(seed, i), Window: -1}
		c.choices, c.steps = 0, 0
		_, _, err := player.Play(ctx, ep, rng.Stream(ep.Seed, "eval/act"))
		if err != nil && !errors.Is(err, errSampled) {
			return nil, err
		}
		all = append(all, c.choices)
	}
	return all, nil
}

// simpleRule returns the rule that plays samples: FIFO if the environment has it, else the first one that does not
// draw.
func (w *Scenario) simpleRule() envs.Rule {
	if r, ok := w.About.Rule("fifo"); ok {
		return r
	}
	if i := slices.IndexFunc(w.About.Rules, func(r envs.Rule) bool { return !r.Draws }); i >= 0 {
		return w.About.Rules[i]
	}
	return w.About.Rules[0]
}

// errSampled ends a window of which enough has been seen.
var errSampled = errors.New("enough of the window was seen")

// choiceCounter is an environment that counts the decisions with a choice.
type choiceCounter struct {
	sched.Arena
	about          *envs.Descriptor
	choices, steps int
}

// Reset implements env.Env.
func (c *choiceCounter) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	err := c.Arena.Reset(ctx, ep, ts)
	if err == nil {
		c.count(ts)
	}
	return err
}

// Step implements env.Env.
func (c *choiceCounter) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if c.steps++; c.steps > sampledSteps {
		return errSampled
	}
	err := c.Arena.Step(ctx, a, ts)
	if err == nil && !ts.Kind.Last() {
		c.count(ts)
	}
	return err
}

func (c *choiceCounter) count(ts *env.TimeStep) {
	if c.about.HasChoice(c.Arena, ts) {
		c.choices++
	}
}

// DescribeChoices says how many choices a training window has, and warns if they are few.
func (w *Scenario) DescribeChoices(ctx context.Context, cfg *config.Config) ([]Fact, error) {
	counts, err := w.Choices(ctx, cfg.Gamma())
	if err != nil || len(counts) == 0 {
		return nil, err
	}
	slices.Sort(counts)
	median := counts[len(counts)/2]
	facts := []Fact{Factf("choices", "a window has %s with a choice (median of %s)",
		plain.Count(median, "decision", "decisions"), plain.Count(len(counts), "window", "windows"))}
	if median < fewChoices {
		facts = append(facts,
			Factf("warning", "there is little to learn where a window has fewer than %d choices: %s", fewChoices,
				w.contend(cfg)))
	}
	return facts, nil
}

// contend says what would make jobs compete.
func (w *Scenario) contend(cfg *config.Config) string {
	help := ""
	if load, ok := envs.Setting(cfg.Env.Settings, "load"); ok {
		help = fmt.Sprintf("a higher load (--set env.load=…, now %v), ", load)
	}
	return fmt.Sprintf(
		"%sa smaller cluster (--cluster) or longer windows (--set env.window=…, now %d) make more jobs wait at once",
		help, w.About.Cut(w.Settings).Window)
}
