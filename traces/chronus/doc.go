// Package chronus reads the deadline traces of Chronus (Gao et al., "Chronus: A Novel Deadline-aware Scheduler
// for Deep Learning Training Jobs", SoCC 2021; published with its code under the MIT licence). They are
// semi-synthetic: arrivals, sizes and run times come from virtual clusters of the Philly trace (CC BY 4.0),
// squeezed into 14 days; models, iterations and deadlines were drawn by the authors. The header has these
// columns, in any order:
//
//	job_id             ID, as written
//	user               User, as written: "vc_" and a virtual cluster; VC is what follows the "vc_"
//	num_gpu            GPUs; a row with 0 is skipped and counted, as the authors' simulator does
//	submit_time        minutes since the origin                                          Submit
//	iterations         Iterations
//	model_name         Model
//	duration           minutes                                                           Work
//	expect_time_list   minutes after the submit, joined by "-", rising                   Deadline
//	expect_value_list  what it is worth to be done by each of them, of 10, falling       checked
//	best_effort        1 = there is no deadline                                          (optional)
//	job_type           strict, soft or best                                              not used
//	interval           the authors do not explain it                                     not used
//
// All times are whole minutes. The files do not state the unit, but with minutes submits end just below 14 days and run
// times just below 3 days. A strict job has one expected time. A soft job has several, and its value falls from one to
// the next: Deadline is the first, up to which the job is worth the full 10, as in the authors' simulator, and
// the others are checked. A best-effort job repeats its submit time as its expected time, which means
// nothing.
//
// Rows are not in order of submit. Iterations are not proportional to run times, because they were drawn independently.
package chronus
