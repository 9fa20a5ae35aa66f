// Package ppo is proximal policy optimisation with a clipped objective (Schulman et al. 2017, arXiv 1707.06347) over
// discrete actions with masks, one or several at once, and continuous ones. It is on-policy: it plays Steps steps of
// all rows, learns from them for Epochs passes, and forgets them.
//
// What a working PPO does beyond the paper is taken from Huang et al. 2022, "The 37 Implementation Details of
// Proximal Policy Optimization" (ICLR blog track), by its numbers there, and from what each detail names:
//
//   - Core 1: rows stepped together, rollouts of fixed length that cross episode ends (replay.Rollout).
//   - Core 2: orthogonal weights, gain √2 hidden, 0.01 policy head, 1 value head; biases 0 (nets/model).
//   - Core 3, 4: Adam with epsilon 1e-5; the learning rate falls linearly to 0 (anneal_lr), each update at the rate of
//     the share of training that was done when its rollout began.
//   - Core 5: generalised advantage estimation (Schulman et al. 2016), returns = advantages + values.
//   - Core 6: every epoch shuffles all steps and cuts them into minibatches that cover them all: a number of
//     minibatches of equal size (minibatches), or minibatches of a given size with the rest in the last (batch, as in
//     Stable-Baselines3).
//   - Core 7: advantages normalised within each minibatch (norm_advantage), with the sample deviation + 1e-8.
//   - Core 8: the clipped surrogate objective (equation 7), the same mask in the old and the new probabilities.
//   - Core 9: value clipping within clip_value, off by default (Andrychowicz et al. 2021 found that it hurts).
//   - Core 10: one loss = policy loss − ent_coef·entropy + vf_coef·value loss, the value loss with its factor ½ (which
//     Stable-Baselines3 leaves out: its vf_coef of 0.5 is 1 here).
//   - Core 11: the gradient's global norm is clipped.
//   - Core 12: statistics of every update; approx_kl is Schulman's k3, mean((r−1) − log r).
//   - Core 13: separate or shared networks for policy and value (network.separate).
//   - Continuous 1, 2, 3: continuous actions are drawn from normal distributions, independent of each other, whose
//     means the network gives and whose deviations are parameters, the same in every state (log_std at the start).
//   - Continuous 4: separate networks, as core 13.
//   - Continuous 5: the environment gets a number clipped to its box, the rollout keeps it as it was drawn. With
//     scale_actions the policy's unit is half the width of the box, from its middle.
//   - Continuous 6, 7: observations minus their running mean, divided by their running deviation (norm_obs), clipped to
//     ±clip_obs. Every observation acted on is counted before it is scaled; the scale is saved beside the weights.
//   - Continuous 8: rewards are divided by the running deviation of the discounted return (reward_scale): one number
//     for a whole rollout, the deviation when it is complete.
//   - Continuous 9: rewards are then clipped to ±clip_reward; off by default, because clipping changes what is optimal.
//   - MultiDiscrete 1: several discrete factors are independent, each with its own mask: log-probabilities and
//     entropies are summed.
//   - Auxiliary 1: the clip range may fall with the learning rate (anneal_clip).
//   - Auxiliary 2: minibatches are cut into shards whose gradients are computed in parallel and summed in order.
//   - Auxiliary 3: an update ends early when approx_kl passes 1.5·target_kl, before the step that measured it is
//     taken (as Stable-Baselines3 does).
//   - Auxiliary 4: masks of illegal actions (Huang and Ontañón 2022, arXiv 2006.14171): their logits become −1e8 before
//     the normaliser, their p·log p counts 0, and the rollout keeps each step's mask.
//
// It differs on purpose in two ways. A truncated episode is not a terminated one: its last step bootstraps from the
// value of the true final observation (Pardo et al. 2018, arXiv 1712.00378), also in the middle of a rollout. Each step
// has its own discount, because decisions need not be evenly spaced in time (env.Spec.Discount); lambda counts
// decisions, or simulated time (Config.LambdaTau).
//
// The greedy policy takes, in every discrete factor, the legal action of the largest logit, the first among equals, and
// the means of continuous actions. The exception is the action that does nothing (env.Spec.NoOp) where actions are a
// single discrete factor: it is taken only if it is likelier than all other legal actions together, or the only legal
// one (agents.ByShare). Policy.By chooses another rule.
//
// Training maximises the return of the sampling policy in the environment's reward. Which checkpoint is best, and how
// good it is in the end, others decide by other measures (docs/guides/train.md).
//
// Config.Loss chooses between a fused loss with a gradient derived by hand and the same formula differentiated
// automatically, which is the one to change (loss.go).
//
// Replicas is data-parallel PPO, and Config.PreemptShare its rule for stragglers (Wijmans et al. 2020, "DD-PPO", arXiv
// 1911.00357, section 3): once a share of the replicas, 60 % in the paper, has its rollout, the others stop collecting
// and all learn from what they have. Each keeps at least a quarter of its rollout, so every replica contributes. It
// differs on purpose: gradients are weighted by their numbers of steps, so every step counts the same, where a mean
// over replicas would favour short rollouts. It is off by default because its results depend on the clock
// (Config.Preempts).
//
// A reward, a loss, a gradient or a parameter that is not finite is an error that names it (Agent.Learn).
//
// The details for images of Atari games and for recurrent networks do not apply. loss.go and loss_kl.go are the only
// files that know the graph library.
package ppo
