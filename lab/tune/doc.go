// Package tune finds the weights of a scheduler by trying: it draws weights, simulates windows of a workload's training
// part with them, and moves to those that do best (the cross-entropy method: Rubinstein, "The cross-entropy method for
// combinatorial and continuous optimization", Methodology and Computing in Applied Probability 1, 1999). There is no
// gradient and no network; a window of 256 jobs takes less than a millisecond.
package tune
