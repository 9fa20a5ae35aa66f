// Package encode holds the observation encoders of the scheduling environments. All numbers are in [0, 1]. An encoder
// writes into the caller's buffer, does not allocate, and reads only what a policy may know: a job's estimate, never
// its work, and nothing about future jobs.
package encode
