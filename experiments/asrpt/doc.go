// Package asrpt rebuilds A-SRPT (Luo, Liu, Lee, Shroff, INFOCOM 2025, arXiv 2501.05563): training jobs that are graphs
// of pipeline stages with replicas, placed so that heavy edges stay inside a server, and started in the order in which
// a virtual single machine finishes them under preemptive SRPT, with iterations predicted from earlier runs. README.md
// says which parts are whose.
//
// It has a machine of its own. simulator/sim derives a job's rate from the GPUs of its gang; here the rate also depends
// on which replica stands on which of them.
package asrpt
