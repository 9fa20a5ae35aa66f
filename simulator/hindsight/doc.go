// Package hindsight searches for a good schedule of jobs that are all known beforehand. No scheduler can know them, so
// the schedule found is no rival: it says how much a window leaves to gain over a rule that never stops a running job.
// A window on which hindsight gains nothing cannot tell good policies from bad ones.
//
// A schedule is an order of the jobs with two marks. At every point the waiting jobs are started in this order where
// they fit, as admission skip does. A job that follows does not start before its predecessor in the order has, even if
// that one has yet to arrive. Behind a job that insists, waits and does not fit, none starts. So a schedule can keep
// GPUs free for a job that is about to come, which no order with skip can.
//
// The search begins with the order in which a base policy starts the jobs. A try moves one job to another place in the
// order, or changes one of its marks, and plays the window. The try becomes the present schedule if it costs no more
// than that, or than the schedule that was present Config.Memory tries ago (late acceptance hill climbing: Burke and
// Bykov, EJOR 258, 2017). The best schedule ever seen is kept, so the result is never worse than the base's own play of
// the window. It is a schedule, not a bound: more tries find better ones.
package hindsight
