// Package policymix is the environment PolicyMix-v1: the agent chooses which of five schedulers from the literature
// acts until the next decision. Jobs, cluster and reward are those of JobSelect-v1.
//
// An agent that always chooses the same scheduler gets the schedule of gymctl sim with it.
package policymix
