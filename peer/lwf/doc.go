// Package lwf is the simulator that the authors of LWF-κ, AdaDUAL and Ada-SRSF published (Wang, Shi, Wang, Chu, arXiv
// 2002.10105), rebuilt from its rules alone: every job is placed, begins and ends in the same millisecond and on the
// same GPUs. It is the reference that the fluid contention of simulator/sim is compared with, and shares no code with
// simulator/sim.
//
// Times are integer milliseconds. Jobs are data-parallel trainings: in each iteration every worker runs forward and
// backward on its GPU, and then, if the job is on several nodes, one all-reduce goes over the links of these nodes.
// Jobs share GPUs and take turns as long as their memory fits. k transfers on a link slow each other down beyond a
// k-th part. A rule places jobs (LWF-κ, first fit, random), another orders tasks and transfers (SRSF), a third says
// whether a ready transfer begins beside others (SRSF(n), AdaDUAL).
//
// The published program moves a transfer forward whenever AdaDUAL asks how much of it is left, so n waiting jobs make
// the transfer that they wait for n+1 times as fast. Question "pure", the default, only reads; "orig" is as published.
//
// The program steps by 1 ms. Here the clock goes from event to event, which gives the same results.
package lwf
