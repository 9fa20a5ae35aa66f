package options

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/env/rollout"
	"clustergym/internal/fault"
	"clustergym/simulator/policyname"
)

// BudgetFlag adds --budget.
func BudgetFlag(f *pflag.FlagSet, budget *rollout.Budget) {
	*budget = rollout.DefaultConfig().Budget
	f.TextVar(budget, "budget", *budget,
		"what a decision of policies rollout:POLICY may cost: `ROLLOUTS`, or a time, as 128 or 30ms")
}

// BudgetOf sets the budget to that of --budget, if it is given; policies are those that it is for.
func BudgetOf(c *cobra.Command, budget rollout.Budget, policies []string, cfg *rollout.Config) error {
	if !c.Flags().Changed("budget") {
		return nil
	}
	cfg.Budget = budget
	for _, p := range policies {
		if policyname.Of(p).Ahead == policyname.Rollout {
			return nil
		}
	}
	return fault.Mistakef("--budget: none of %s looks ahead; name a policy such as rollout:sjf+skip",
		strings.Join(policies, ", "))
}
