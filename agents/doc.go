// Package agents is the contract of what acts and learns in environments. It holds no algorithm: agents/ddqn
// and agents/ppo implement it, agents/baseline has random play, agents/train moves the data between environments
// and agent, agents/checkpoint keeps it, and agents/agenttest holds any learner against the contract.
package agents
