// Package encode holds the observation encoders of the scheduling environments. All numbers lie in [0, 1]; an
// encoder writes into the caller's buffer, does not allocate, and looks only at what a policy may know: the
// estimate of a job, never its work, and nothing of jobs to come.
package encode
