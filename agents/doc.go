// Package agents defines the contract of what acts and learns in environments. It contains no algorithm. agents/ppo and
// agents/ddqn learn in any environment, agents/improper mixes controllers that are given, agents/maml learns in any
// family of tasks, experiments/metascheduler/mbmpo with experiments/metascheduler/perfmodel in env/workerplace.
// agents/woa searches for plans, agents/baseline has random play, agents/train moves the data between environments and
// agent, agents/checkpoint saves it, and agents/agenttest tests any learner against the contract.
package agents
