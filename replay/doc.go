// Package replay stores experience and turns it into what learners fit: buffers of n-step transitions drawn uniformly
// (Uniform) or by priority (Prioritized) for off-policy learners, and rollouts of fixed length with generalised
// advantage estimation (Rollout) for on-policy learners.
//
// Only this package knows how an episode's end enters a target. Discounts are per step, because decisions are not
// evenly spaced in simulated time (env.Spec.Discount). They multiply along an n-step return and are exactly 0 if the
// episode terminated; at a truncation the target bootstraps from the true final observation. Steps that are not
// transitions (the reset step of NextStep batches) are left out.
//
// The package holds no network, chooses no action and starts no goroutine. Nothing in it is safe for concurrent use.
package replay
