// Package baseline has random play and rules within an action space: FIFO or SJF that see only the slots an agent
// sees and can only do what an agent can do. Compared with the same rule over the whole simulator (env/heuristic),
// they show what the narrower choice costs.
package baseline
