// Package queuenet is small queueing networks in slots of equal length, for which the best scheduler is known: it is a world
// for checking what learns to mix schedulers, not an environment of the gym.
//
// In every slot one set of queues that may be served together is chosen. Each of its queues that holds a packet, and whose link is
// up, sends one. Then each queue gets a packet with its probability. What counts is the mean number of packets that wait, which by
// Little's law is the mean delay times the arrival rate.
//
// An action is the number of a base controller, which chooses the set: always the same one (fixed), the one that serves the longest
// queue or the most packets, or the most queues. A network may have two loads that alternate.
//
// The optimum is that of all schedulers that see the queues. Optimum finds it by relative value iteration over queues up to a
// bound. Two queues and one server without losses have it in closed form, and so do the fixed controllers' mixtures (Single, BestShares, Busy).
package queuenet
