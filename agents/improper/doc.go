// Package improper learns over base controllers that are given: it chooses, at every step, which of them acts. Its
// policy is a softmax mixture of them, which may be better than every one of them (improper learning: Zaki, Mohan,
// Gopalan and Mannor 2021, "Improper reinforcement learning with gradient-based policy optimization", arXiv 2102.08201;
// and 2022, "Actor-critic based improper reinforcement learning", ICML, arXiv 2207.09090).
//
// The papers' mixture has one weight for each controller, exp θ_m / Σ exp θ, in every state:
//
//   - Method pg is SoftMax PG: θ += lr·∇V. With lambda 1 the gradient is that of rollouts; with lambda 0 it is one-step
//     actor-critic (ACIL).
//   - Method nac is natural actor-critic (NACIL): θ += lr·(F + damping·I)⁻¹∇V.
//   - Method spsa estimates ∇V by perturbing θ (simultaneous perturbation, Spall 1992) in directions that are uniform
//     on the sphere.
//   - Exact is SoftMax PG with the true gradient, where the process is known.
//
// With features: observation, which is ours, the weights depend on the state: θ_m is linear in the observation.
//
// An action of the environment is the number of a controller, as in PolicyMix-v1. In any other environment the actions
// are the controllers.
//
// It differs on purpose from the papers:
//
//   - The critic, linear in the observation and its squares, is fitted to the returns of each rollout by least squares,
//     in place of a number of steps of TD(0). It has no step size. Advantages are generalised (Schulman et al. 2016,
//     arXiv 1506.02438) and normalised over the rollout, which makes lr independent of the unit of rewards.
//   - The Fisher matrix F is the exact expectation over controllers in the states that were visited, in place of an
//     outer product of the controllers that were drawn.
//   - max_kl bounds a natural step, as a trust region does. lr falls to 0 over the training (anneal_lr): with a
//     constant lr the weights keep moving by the noise of the estimates.
//   - The perturbations of spsa are in pairs, θ + c·u and θ − c·u, in place of single ones: the estimate has the same
//     mean and a much smaller variance. With train.group: 2 both play the same episodes.
//
// The policy that is judged is the mixture itself: it draws its controllers. Without a stream to draw from it takes the
// likeliest.
package improper
