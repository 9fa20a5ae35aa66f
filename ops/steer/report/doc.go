// Package report reads the logs of gymctl steer and says whether a policy would help: how often it agrees with the
// cluster at real starts, what the observed jobs would have waited under it and under a model of the cluster's own
// scheduler, and how far that model may be believed.
//
// Memory grows with the jobs of a log, not with its lines.
package report
