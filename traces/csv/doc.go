// Package csv reads and writes the native trace format: any CSV file (RFC 4180; CR LF and a byte order mark are
// accepted) whose header has at least
//
//	submit_time  seconds since the trace's origin     duration  run time, seconds     num_gpu  GPUs of the gang
//
// A num_gpu below 1 is a share of one GPU, in whole thousandths. Optional are job_id, user, vc, gpu_type (alternatives
// joined by |), num_cpu (cores of the gang), mem_gb (GiB of the gang), estimate (seconds), model, iterations, deadline
// (seconds since the origin), priority, min_gpu and max_gpu (elastic range) and status. An empty cell means "not
// given". The ID of a job without job_id is its position, from 0, and no two rows may have the same ID. Other
// columns are labels, which Reader.Labels and Reader.Label return. Numbers are decimal and read exactly, never through
// a float.
//
// The package does not guess the column names of other formats: each of those has its own package.
package csv
