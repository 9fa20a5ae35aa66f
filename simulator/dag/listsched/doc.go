// Package listsched plans task graphs by list scheduling, and small ones exactly:
//
//	heft            upward ranks, earliest finish with insertion (Topcuoglu, Hariri and Wu, TPDS 13(3), 2002, section 4)
//	heft-noinsert   the same order, each task behind the last one of its processor
//	heft-noise      the best of some plans of heft whose ranks carry noise (NoisyHEFT; its number of plans is the caller's, so
//	                Policies does not name it)
//	cpop            critical path on one processor (the same paper, section 5)
//	peft            optimistic cost table (Arabnejad and Barbosa, TPDS 25(3), 2014)
//	eft-index       earliest finish in index order, as if edges carried nothing and without insertion: the greedy
//	                placement that published code of the RTGS family uses
//	list-ready      Graham's list scheduling (SIAM J. Appl. Math. 17(2), 1969): a processor that is idle takes the first
//	                task of the list that is ready
//	random          processors drawn uniformly, tasks in index order
//	optimum         branch and bound
//
// Every tie goes to the lowest index, of tasks and of processors, and comparisons are exact. "Mean communication
// cost" is dag.RankMean: programs read the papers' words in several ways, and makespans depend on it. Ranks are means
// over the processors that can run a task. Tasks are taken from a ready queue, so that tasks of no length never
// overtake their parents.
//
// Deliberate differences from programs of the same names: CPOP's critical path is walked along the largest rank, not
// found by comparing sums of floating point numbers. PEFT takes its tasks from a ready queue, because a child can
// have a larger mean in the table than its parent.
package listsched
