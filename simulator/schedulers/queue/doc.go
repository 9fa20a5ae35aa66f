// Package queue holds the jobs that wait, in the order in which a scheduler serves them, and the books that say which
// of them may start: it needs a job, its request and its key, and nothing of the policy that made the key.
//
// A job in a queue is an Entry: its key, its position in the trace, which decides between equal keys, and its number.
//
//	Queue  finds the first in rank that fits: a heap for each kind of request (rows), under a tournament of their heads
//	Kinds  is the queue of back-filling, which also asks how long jobs last: a search tree (Tree) for each kind of request
//	Ends   holds the running jobs in the order in which they are expected to end
//	Freed  is what was given back since the last pass: where nothing was, no job has room that had none
//	Usage  is what users hold and what is free, for orders whose keys follow from it
//
// Where all jobs of a class always have the same key, Classes ranks the classes, and jobs keep their places within.
package queue
