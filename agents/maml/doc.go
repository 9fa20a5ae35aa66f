// Package maml meta-learns: it finds parameters from which one or a few steps of policy gradient on a new task improve
// play much. It adapts any policy that gives its parameters and the gradients of its losses (Model) to any family of
// tasks (Distribution). Tasks run side by side on goroutines; sums are made in the order of tasks, so the number of
// workers changes nothing but speed.
//
//   - MAML (Finn, Abbeel and Levine 2017, arXiv 1703.03400, algorithm 3): the gradient of the loss after adaptation
//     with regard to the parameters before it, Π(I − αH_k)·∇L(φ_K). Order 2 multiplies by the Hessians H_k through
//     central differences of exact first-order gradients, (∇L(φ+hv) − ∇L(φ−hv))/2h: differentiating a gradient once
//     more, as the graph library offers it, gives wrong numbers. Order 1 (FOMAML, section 5.2 of the paper) omits them.
//   - The objective of an inner step is the surrogate Σ r·A whose Hessian is that of the expected return (Rothfuss et
//     al. 2019, arXiv 1810.06784): −Σ log π·A, which many programs differentiate twice, has the right gradient and
//     another Hessian.
//   - Reptile (Nichol, Achiam and Schulman 2018, arXiv 1803.02999, algorithm 2): θ += ε·mean(φ_K − θ). With a single
//     inner step it is training on all tasks at once without any meta-learning, so at least two are required.
//   - Outer steps: a trust region (Schulman et al. 2015, arXiv 1502.05477): conjugate gradients on the divergence of
//     the adapted policies, through the adaptation with order 2, and a line search that adapts anew at every point; or
//     PPO's clipped objective with divergences from the policies that acted as anchors (ProMP, equation 12 of Rothfuss
//     et al.).
//   - Advantages: generalised advantage estimation over a linear function of features and time (Duan et al. 2016, arXiv
//     1604.06778, appendix 2) that is fitted to each task anew. A truncated episode counts as a terminated one, because
//     time is a feature.
//
// update.go has only the updates, over any gradients and in either precision. The learner knows no environment and no
// network.
package maml
