// Package steer lets a policy look at a real cluster (live.Cluster), order its queue, or start its jobs: the loop of
// gymctl steer.
//
// One cycle observes the cluster, shows it to the environment in which the policy acts (package mirror), asks the
// policy, writes what the mode allows, and adds a line to the log. In mode shadow nothing is ever written. In mode rank
// the queue's order is: a program that dies leaves the last order behind, with which the cluster goes on. In mode gate
// jobs are held back until the policy starts them, so a program that dies would strand them: a guard, which is another
// process, watches a lease and releases them.
package steer
