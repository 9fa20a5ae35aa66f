// Package dally is the simulator that the authors of Dally published (Sharma et al., arXiv 2401.16492; the program is
// a fork of Themis' simulator), rebuilt from its rules alone so that its numbers agree to the last bit. It is the
// reference that simulator/sim's own delay scheduling is compared with, and shares no code with simulator/sim.
//
// Times are float64 seconds, and expressions are evaluated in the order of the authors' program. Jobs run in blocks
// of a number of iterations. GPUs are leased. A block is never interrupted; at its end a job gives back the GPUs
// whose leases have expired or would expire. A pass offers the free GPUs to jobs in the order of Dally (least
// progress for the time used, compared with the ideal), of Tiresias (least GPU-time) or of Gandiva (started last
// first). "The first machine that fits" is the first in the iteration order of a hash map of that program, so the map
// is rebuilt here too.
//
// There are two variants. In "published", running jobs take part in passes and get a second gang, which they never
// use and keep until they end. "waiting-only" adds one condition: only waiting jobs are asked. Each file cites the
// rule that it implements.
package dally
