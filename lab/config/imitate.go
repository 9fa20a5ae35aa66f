package config

import (
	"errors"
	"fmt"

	"clustergym/internal/fault"
	"clustergym/lab/envs"
	"clustergym/simulator/policyname"
)

// Teacher returns the policy that train.imitate names. It acts through the actions of the environment.
func (c *Config) Teacher() (*envs.Rule, error) {
	d := c.Descriptor()
	r, err := c.rival(c.Train.Imitate, d)
	if err != nil {
		return nil, err
	}
	if r.Rollout != nil && r.Rollout.Budget.Time > 0 {
		return nil,
			errors.New(
				"with a budget of time it does not decide the same twice; want a number of rollouts for eval.rollout.budget")
	}
	if r.Rule == nil {
		return nil,
			errors.New("it does not act through the actions of " + d.ID + "; want a policy that an agent can imitate, " +
				teachers(d))
	}
	return r.Rule, nil
}

// teachers says in words which policies can be imitated.
func teachers(d *envs.Descriptor) string {
	if d.Scheduling() {
		return policyname.RuleForm + " or " + policyname.Rollout.String() + policyname.RuleForm
	}
	return Random
}

// wantedTeacher says what would be right in place of a teacher that is refused with err.
func wantedTeacher(d *envs.Descriptor, name string, err error) string {
	if policyname.IsWritten(name) && d.Simulated() {
		return policyname.Compiles + err.Error()
	}
	return teachers(d) + ": " + err.Error()
}

// validateImitation adds the faults of train.imitate.
func (c *Config) validateImitation(d *envs.Descriptor, l *fault.List) {
	name := c.Train.Imitate
	if name == "" {
		return
	}
	const key = "train.imitate"
	if c.Meta() {
		l.Add(false, key, name, "nothing with agent "+c.Agent+", which learns to adapt; ppo and ddqn imitate")
		return
	}
	if c.Agent == "improper" {
		l.Add(false, key, name,
			"nothing with agent improper, whose controllers are what is imitated elsewhere; ppo and ddqn imitate")
		return
	}
	if _, err := c.Teacher(); err != nil {
		l.Add(false, key, name, wantedTeacher(d, name, err))
	}
	steps, epochs, rounds := c.Train.Imitation()
	switch {
	case c.Agent == "ppo":
		l.Add(c.PPO.Replicas == 1, key, name,
			fmt.Sprintf("nothing with ppo.replicas %d: one learner alone imitates", c.PPO.Replicas))
	case c.Agent == "ddqn" && rounds > 1:
		l.Add(false, "train.imitate_rounds", rounds,
			"1 with agent ddqn: its replay keeps the actions that were taken, not what a teacher says of them")
	case c.Agent == "ddqn":
		l.Add(float64(steps)*float64(epochs) > float64(c.DDQN.LearningStarts), "train.imitate_steps", steps,
			fmt.Sprintf(
				"so many that the steps of all %d epochs are more than the %d of ddqn.learning_starts: it would learn nothing",
				epochs, c.DDQN.LearningStarts))
	}
}
