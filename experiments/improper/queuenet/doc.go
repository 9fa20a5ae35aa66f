// Package queuenet has small queueing networks in slots of equal length, for which the best scheduler is known. They
// check what learns to mix schedulers; gymctl does not offer them as environments.
//
// In every slot one set of queues that may be served together is chosen. Each of its queues that holds a packet, and
// whose link is up, sends one. Then each queue gets a packet with its probability. What counts is the mean number of
// packets that wait at the end of a slot, which by Little's law is the mean delay times the arrival rate.
//
// An action is the number of a base controller, which chooses the set: always the same one, the one with the most
// packets, or the one with the most queues that hold a packet. A network may have several loads that alternate.
//
// The optimum is that of all schedulers that see the queues. Solve finds it by relative value iteration over queues up
// to a bound. One server without losses has it in closed form (Busy), and so do the mixtures of its fixed controllers
// (BestShares).
package queuenet
