// Package gavel reads the traces of Gavel (Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep
// Learning Workloads", OSDI 2020; published with its code under the MIT licence). There is no header. Fields are
// separated by tabs. There are two layouts with different orders of fields; the number of fields tells which it is:
//
//	7 fields  10 fields
//	1         1          job type, as in "ResNet-18 (batch size 64)"               Model, as written
//	2         2          shell command, with "%s" for folders                      Name
//	-         3          working directory                                         not used
//	3         4          name of the command's argument for steps                  not used
//	4         5          1 = the command needs a data folder, 0 = it does not      not used
//	5         6          total steps                                               Iterations
//	6         10         arrival, seconds since the origin                         Submit
//	7         7          GPUs ("scale factor")                                     GPUs
//	-         8          priority weight: a share, larger is more                  Priority
//	-         9          SLO: a multiple of the run time alone, -1 = none          SLO
//
// The files with 7 fields are semi-synthetic: arrivals and sizes of one virtual cluster of the Philly trace (CC BY
// 4.0), cut at 2,000 jobs, with job types that the authors drew. The workloads with 10 fields were run on a cluster.
//
// A trace gives the number of steps of a job, not its run time: Work is 0. The run time is the
// number of steps divided by the throughput in a table for the job type, GPUs and GPU type. The SLO is a
// multiple of that time, counted from the arrival, so the deadline also needs the table. Jobs have no ids: the ID is
// the number of the row, from 0.
package gavel
