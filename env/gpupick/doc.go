// Package gpupick is the environment GPUPick-v1: jobs start in order of submit, and the agent picks the GPUs of the
// one whose turn it is, one by one, as in Proximity-DRL (Deng et al., "GPU Job Scheduler with Deep Reinforcement
// Learning", Canadian AI 2024). It is paid for gangs whose GPUs lie close to each other.
//
// It is not for choosing jobs: see package jobselect.
package gpupick
