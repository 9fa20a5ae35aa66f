// Package ddqn is deep Q-learning (Mnih et al. 2015, Nature 518) over one discrete set of actions with masks, with
// the improvements that help most. The list gives each detail, its source and where the code is; what has a key can be
// switched off:
//
//   - Loss on the action taken alone, no gradient through the target (Mnih et al. 2015, algorithm 1): op.TDLoss.
//   - Target r + d·Q(s′), d the product of the steps' discounts, which follow simulated time (env.Spec.Discount) and
//     are 0 exactly where the episode terminated; a truncated one bootstraps from its true final observation (Pardo et
//     al. 2018, arXiv 1712.00378; handle_timeout_termination in Stable-Baselines3): package replay, workShard.
//   - double: the online network chooses the next action, the target network values it (van Hasselt et al. 2016, arXiv
//     1509.06461, equation 4). Stable-Baselines3's DQN is as with double off: workShard.
//   - Masks in three places: the greedy action (agents.Best), the random one, uniform over the legal actions (pick),
//     and the action that the target maximises over (workShard), for which the replay keeps the next mask. After a
//     truncation without a known final mask every action counts as legal.
//   - duelling: Q = V + A − mean A, the mean over the legal actions (Wang et al. 2016, arXiv 1511.06581, equation 9):
//     op.Duel and kernel.Duel.
//   - n_step: targets over several steps (Sutton 1988; Hessel et al. 2018, arXiv 1710.02298). They end with 0 at a
//     termination and with d·Q of the final observation at a truncation, d the product of the discounts up to there.
//     Transitions that begin less than n steps before an end are kept too: replay's nstep.
//   - prioritized: p = (|δ| + eps)^alpha, new transitions at the largest priority so far, importance weights divided
//     by the batch's largest, their exponent rising linearly from beta to 1 over the training (Schaul et al. 2016,
//     arXiv 1511.05952, table 3): replay.Prioritized, Agent.beta.
//   - huber: Huber's loss with that delta, 1 as in Stable-Baselines3; 0 is the squared error of CleanRL's DQN.
//   - max_grad_norm: the gradient's global norm is clipped, at 10 as in Stable-Baselines3: optim.ClipScale.
//   - Adam with PyTorch's epsilon (adam_eps); anneal_lr lets its rate fall linearly to 0, as rates called lin_ do in
//     RL Zoo: Agent.rate.
//   - Weights and biases begin as PyTorch's do, uniform within 1/√inputs (network.init fan-in), as in both libraries;
//     orthogonal is the other choice: nets/model.
//   - target_every, tau: every target_every environment steps the target network becomes a copy, or moves by tau,
//     however many gradient steps fall between (Mnih et al. 2015 and both libraries); with target_every 0 after every
//     gradient step (Lillicrap et al. 2016, arXiv 1509.02971): Learn, moveTarget.
//   - train_every, gradient_steps: gradient_steps gradient steps after every train_every environment steps;
//     gradient_steps -1 means train_every (Stable-Baselines3): Learn.
//   - learning_starts: the agent learns nothing before, and all its actions are random (Stable-Baselines3) unless
//     warmup_random is off, as in CleanRL: due, Agent.epsilon.
//   - eps_start, eps_end, eps_share: the share of random actions falls linearly over a share of the training:
//     Agent.epsilon.
//
// Steps are environment steps over all rows, however many rows are stepped together; Stable-Baselines3 multiplies
// train_freq by the number of environments. The first update comes at learning_starts itself, not at the first multiple
// of train_every after it. A copy of the target that is due together with an update is made after the update, as in
// CleanRL; Stable-Baselines3 makes it before. Each row decides by itself whether it explores.
//
// The greedy policy takes the legal action of the largest value, the first among equals (agents.Best). An action that
// does nothing (env.Spec.NoOp) has no special place, unlike in package ppo.
//
// Training minimises the error of action values in the environment's reward. Which checkpoint is best, and how good it
// is in the end, others decide by other measures (docs/guides/train.md).
//
// Rewards are multiplied by reward_factor and, with reward_scale, divided by the running deviation of the discounted
// return. The replay holds rewards as they were received, and the whole batch is divided by the deviation at the time
// of drawing: old and new transitions have the same unit, and while the deviation still changes, all targets change
// together and the network follows. Scaling at the time of storing would mix units in one batch.
//
// A loss, a gradient or a parameter that is not finite is an error that names it (Agent.Learn).
//
// loss.go is the only file that knows the graph library. Several discrete factors and continuous actions are refused.
package ddqn
