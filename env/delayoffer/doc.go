// Package delayoffer is the environment DelayOffer-v1: Dally's delay scheduling (Sharma et al., arXiv 2401.16492) where
// an agent in place of timers says whether a job takes GPUs that lie in one rack, or in several, or waits for nearer
// ones. Who is asked, with which GPUs, and when leases end is the policy dally's of env/heuristic; an agent that
// answers as its timers do plays that policy exactly.
package delayoffer
