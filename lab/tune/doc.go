// Package tune finds the weights of a scheduler by trying: it draws weights, simulates the same jobs with all of them,
// and moves to those that do best (the cross-entropy method: Rubinstein, "The cross-entropy method for combinatorial
// and continuous optimization", Methodology and Computing in Applied Probability 1, 1999). There is no gradient and no
// network. Jobs are those of streams, draws of a generator or a recorded training part, and the result is checked on
// validation streams; or, with eval.protocol windows, those of windows of the training part.
package tune
