// Package ddqn is deep Q-learning (Mnih et al. 2015, Nature 518) over one discrete set of actions with masks, with
// the improvements that pay most, each of which can be switched off:
//
//   - double: the online network chooses the next action and the target network values it (van Hasselt et al. 2016,
//     arXiv 1509.06461, equation 4).
//   - duelling: Q = V + A − mean A, the mean over the legal actions (Wang et al. 2016, arXiv 1511.06581, equation 9).
//   - n_step: targets over several steps (Sutton 1988; Hessel et al. 2018, arXiv 1710.02298), which end at a
//     termination and bootstrap at a truncation from the true final observation (package replay).
//   - prioritized: replay by error, with importance weights whose exponent beta rises linearly to 1 over the training
//     (Schaul et al. 2016, arXiv 1511.05952).
//
// The target is r + d·Q(s′), with d the product of the steps' discounts: they follow simulated time
// (env.Spec.Discount) and are 0 exactly where the episode terminated. Masks enter in three places: the greedy
// action, the random one (uniform over what is legal) and the action that the target maximises over, for which the
// next mask is kept in the replay. A truncated episode whose final mask nobody knows counts every action as legal.
//
// Rewards are multiplied by reward_factor and, with reward_scale, divided by the running deviation of the discounted
// return. The replay holds rewards as they were received, and the deviation that stands when a batch is drawn
// divides all of it: so old and new transitions agree on one unit, and while the deviation still moves, all targets
// move together and the network follows. The other way, scaling at the time of storing, would mix units in one batch.
//
// Counts of steps are environment steps over all rows, however many are stepped together. Losses, gradient clipping
// and schedules are as in Stable-Baselines3's DQN (Huber's loss, global norm 10, epsilon linear over a share of the
// training) with the addition of a soft target update (tau below 1). loss.go is the only file that knows the graph
// library. Several discrete factors and continuous actions are refused.
package ddqn
