// Package replay keeps experience and turns it into what learners fit: buffers of n-step transitions drawn
// uniformly (Uniform) or by priority (Prioritized) for off-policy learners, and rollouts of fixed length with
// generalised advantage estimation (Rollout) for on-policy ones.
//
// It is the one place that knows how an episode's end enters a target. Discounts are per step, because decisions
// are not evenly spaced in simulated time (env.Spec.Discount): they multiply along an n-step return, are exactly 0
// where the episode terminated, and at a truncation the target bootstraps from the true final observation.
// Steps that are no transitions (the reset step of NextStep batches) are left out.
//
// It holds no network, chooses no action and starts no goroutine. Nothing here is safe for concurrent use.
package replay
