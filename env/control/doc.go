// Package control holds problems with known answers. They are for checking agents before anyone trusts them with a
// cluster:
//
//   - probes, each of which isolates one thing that an agent must get right and shows by its learnt values which
//     one is wrong, and InvalidAction-v1, the test problem for masks;
//   - classic control, CartPole-v1, Acrobot-v1 and MountainCar-v0, equal to Gymnasium's bit for bit as far as the
//     latter is the same on all machines (see trig.go), so that results can be compared;
//   - families of tasks for meta-learning, Bandit-v1 and Nav2D-v1 (with real-valued actions). They are of type
//     Family: Episode.Task names a task; without one, the task is drawn from the seed.
//
// All are ordinary environments: seeded, with snapshots, rendered as text and in pixels, and tested by package
// env/envtest. Discounts are per step (Spec.Tau is 0) and Elapsed is always 0. None of them has a workload:
// Episode.Window is ignored, a Split is refused, and so is a Task in a problem without tasks.
package control
