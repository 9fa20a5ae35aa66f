// Package kube knows the objects of Kubernetes that jobs consist of, and reads recordings of them as traces. Facts about the
// objects are from the API's reference (batch/v1, v1) and Kueue's (kueue.x-k8s.io/v1beta1, v1beta2).
//
// A recording is what kubectl prints with -o json, of Jobs, pods and Workloads together or one after the other:
//
//	kubectl get jobs,pods,workloads -A -o json > now.json
//	kubectl get jobs -A -o json --watch > jobs.json        # one object after the other, for as long as it runs
//
// or what the API server sends: lists, and the events of watches ({"type": …, "object": …}), also with --output-watch-events. Of
// each object the last state counts, so a recording of days has Jobs that have long been deleted.
//
//		Job       creationTimestamp                                   Submit
//		          the first pod's PodScheduled, else status.startTime  start
//		          completionTime, or the condition Failed              end; Work is the end less the start
//		          parallelism (completions, if fewer) × one pod        GPUs, CPUMilli, MemBytes
//		          activeDeadlineSeconds, or Kueue's limit              Estimate
//		          namespace, queue                                     VC, Group
//		Workload  that is no Job's: conditions Admitted and Finished  start, end
//		pods      without a Job: as one job each, or as the gang that a label names
//
//	  - Jobs that ask for no GPUs are left out and counted, and so are those that have not started or not ended.
//	  - Pods are needed only for the moment at which a Job got its nodes: status.startTime is when it was first let start. Pods that
//	    have gone by the end of the recording count as long as they were seen.
//	  - A gang's Work runs from its first pod's start to its last pod's end.
package kube
