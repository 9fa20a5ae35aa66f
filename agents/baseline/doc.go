// Package baseline holds random play and the rules that live inside an action space: FIFO or SJF that see only
// the slots an agent sees and can only do what it can. Beside the same rule over the whole simulator
// (env/heuristic) they show what the narrower choice costs.
package baseline
