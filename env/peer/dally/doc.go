// Package dally is the simulator that the authors of Dally published (Sharma et al., arXiv 2401.16492; the program
// is a fork of the one of Themis), rebuilt from its rules alone so that its numbers come out to the last bit. It is
// the machine that env/sim's own delay scheduling is compared with; nothing of env/sim is in it.
//
// Times are float64 seconds, and expressions are evaluated in the order in which that program has them. Jobs run in
// blocks of a number of iterations; GPUs are leased; a block is never interrupted, and at its end a job gives back
// what has expired or would expire. A pass offers the free GPUs to jobs in the order of Dally (least progress for
// the time used, compared with the ideal), of Tiresias (least GPU-time) or of Gandiva (started last first). "The
// first machine that fits" is the first in the order of a hash map of that program, so the map is here too.
//
// Two variants: in "published" jobs that run take part in passes and are given a second gang, which they never use
// and keep until they end; "waiting-only" is the same with one condition added: only jobs that wait are asked. Each
// file cites the rule that it holds.
package dally
