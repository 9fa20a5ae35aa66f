// Package gpupick is the environment GPUPick-v1: jobs start in order of submit, and the agent picks the GPUs of the
// next job one by one, as in Proximity-DRL (Deng et al., "GPU Job Scheduler with Deep Reinforcement Learning", Canadian
// AI 2024). The reward is for gangs whose GPUs are close to each other.
//
// The agent does not choose jobs; for that, see package jobselect.
package gpupick
