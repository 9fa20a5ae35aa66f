// Package assess says from a recorded accounting whether another order of the queue, or other hardware, would help a
// cluster, and how sure that is: what was recorded, models of the scheduler that ran and how close they come, other
// policies on the same jobs, who would gain and who would lose, and what-ifs.
//
// An interval is the one of a comparison over blocks of time, widened by the error of the model that stands for the
// real scheduler. A gain is offered only if it is certain after both.
package assess
