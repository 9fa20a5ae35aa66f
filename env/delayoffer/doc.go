// Package delayoffer is the environment DelayOffer-v1: Dally's delay scheduling (Sharma et al., arXiv 2401.16492) with
// an agent in place of the timers. The agent decides whether a job takes GPUs in one rack, or in several, or waits for
// nearer ones. The policy dally of simulator/schedulers decides which job is asked, which GPUs it is offered, and when
// leases end. An agent that answers as the policy's timers do plays that policy exactly.
package delayoffer
