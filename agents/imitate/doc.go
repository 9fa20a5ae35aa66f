// Package imitate teaches an agent by the play of a policy before it learns by itself: behaviour cloning, or DAgger
// (Ross, Gordon and Bagnell 2011, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online
// Learning") with several rounds.
//
// In the first round the teacher plays episodes, and what it does is recorded. In each later round the learner plays,
// and the teacher says at every step what it would have done (the paper's parameter-free choice, beta 1 in the first
// round and 0 after it), so that the learner also hears what to do in states that only its own mistakes lead to. After
// each round the learner goes through all that is recorded so far, Epochs times.
//
// A recording holds actions, not observations: an episode and its actions decide everything, and simulating is cheap
// where asking the teacher may not be. Every pass plays the episodes again, in rows that are stepped together, and
// shows them to an agents.Pupil step by step.
//
// What happens depends on the seed alone and not on the number of workers. A phase can be stopped between any two steps
// of a pass, or between two blocks of episodes while it records, and continued from its State, the pupil's own parts
// and what was recorded, bit for bit.
package imitate
