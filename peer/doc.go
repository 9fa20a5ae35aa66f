// Package peer has simulators that others published, rebuilt so that they give the same schedules.
//
// Its packages, from the lowest up (written by go test ./internal/archtest -run TestMaps -update):
//
//   - internal/rows: reads the tables of the programs that are rebuilt in package peer
//   - rlscheduler: is the simulator that the authors of RLScheduler published (Zhang et al., "RLScheduler: an automated
//     HPC batch job scheduler using reinforcement learning", SC 2020; github.com/DIR-LAB/deep-batch-scheduler), rebuilt
//     from its rules alone: its machine, its observation, its bounded slowdown
//   - dally: is the simulator that the authors of Dally published (Sharma et al., arXiv 2401.16492; the program is a
//     fork of Themis' simulator), rebuilt from its rules alone so that its numbers agree to the last bit
//   - lwf: is the simulator that the authors of LWF-κ, AdaDUAL and Ada-SRSF published (Wang, Shi, Wang, Chu, arXiv
//     2002.10105), rebuilt from its rules alone: every job is placed, begins and ends in the same millisecond and on
//     the same GPUs
package peer
