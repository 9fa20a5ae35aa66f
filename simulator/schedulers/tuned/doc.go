// Package tuned implements the orders whose weights gymctl tune searches for: hold, which never stops a running job and
// can leave GPUs idle, and index, which preempts. Hold and Index state the formulas. Logarithms are natural, times in
// hours.
//
// The weights of hold (policy.hold), each of a feature of a job that waits:
//
//	key      feature                                                                    unit
//	width    GPUs that it asks for, in the order of service                             log of a number
//	spread   mean over median of its forecast, in the order of service                  log of a ratio
//	base     none: it is added for every job that could be held back                    1
//	time     estimated run time                                                         log of hours
//	wide     GPUs that it asks for                                                      log of a number
//	unsure   mean over median of its forecast                                           log of a ratio
//	full     share of the cluster's GPUs that are taken once it has started             0 to 1
//	blocked  share of the cluster's GPU-time that is taken for as long as it runs       0 to 1
//	both     blocked times the estimated run time                                       share × log of hours
//	age      time that it has waited over its estimated run time                        log of 1 + a ratio
//	queue    GPUs for which all waiting jobs ask over the cluster's                     log of 1 + a ratio
//	delay    whether it would delay the first job in line that does not fit             0 or 1
//	later    time for which it would delay that job over that job's run time            log of 1 + a ratio
//
// The weights of index (policy.index), each of a feature of a job that waits or runs:
//
//	key      feature                                                                    unit
//	left     expected time left                                                         log of hours
//	gittins  inverse of its Gittins index                                               log of hours
//	news     time left by the forecast of today over that by its own, while it waits    log of a ratio
//	attained time that it has run                                                       log of 1 + 12 × hours
//	width    GPUs that it asks for                                                      log of a number
//	busy     GPUs for which all waiting jobs ask over the cluster's, times width        log of 1 + a ratio, × log
//	spread   mean over median of its forecast                                           log of a ratio
//	wait     time that it has waited over the time left                                 log of 1 + a ratio
//	kin      similar jobs in the system: of one user, name and request                  log of a number
//	elder    longest run time so far among the similar jobs over the time left          log of 1 + a ratio
//	stay     whether it runs; subtracted                                                0 or 1
//	wider    GPUs that it asks for, while it runs; subtracted                           log of a number
//	longer   expected time left, while it runs; subtracted                              log of hours
package tuned
