// Package elasticflow reads the traces of ElasticFlow (Gu et al., "ElasticFlow: An Elastic Serverless Training Platform
// for Distributed Deep Learning", ASPLOS 2023; published with its code under Apache-2.0). They are semi-synthetic:
// arrivals, sizes and run times come from virtual clusters of the Philly trace (CC BY 4.0) or were made up; the authors
// drew models and deadlines. The header has these columns; their order differs between the files:
//
//	job_id          ID, as written
//	submit_time     seconds since the origin                                             Submit
//	iteration       Iterations
//	model_name      Model, without the batch size
//	ddl             seconds since the origin                                             Deadline
//	batch_size      examples in a batch, all GPUs together                               Batch, MaxGPUs
//	num_gpu         GPUs: the size for which duration was computed
//	duration        seconds on num_gpu GPUs: iteration over the throughput on A100s      Work
//	real_iteration  Iterations instead of iteration                                      (optional)
//	real_duration   Work instead of duration, which then is Estimate                     (optional)
//	best_effort     1 = ddl does not hold: no Deadline                                   (optional)
//
// Jobs are elastic. The authors' scheduler gives a job any number of GPUs from 1 to the most for which its batch size
// was measured, at most 64 and at most one for each example; the measurements are not in the trace, so MinGPUs is 1 and
// MaxGPUs is the smaller of 64 and batch_size, but never below num_gpu. How much faster a job runs on more GPUs must
// come from a throughput table.
//
// ddl may be before submit_time + duration: such a job meets its deadline only on more GPUs than num_gpu. In the
// published files the real_ columns equal the plain ones in every row, and the authors' scheduler does not read them.
// Rows may be out of order of submit.
package elasticflow
