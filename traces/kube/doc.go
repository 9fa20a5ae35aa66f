// Package kube knows the objects of Kubernetes that jobs consist of, and reads recordings of them as traces. Facts
// about the objects are from the API's reference (batch/v1, v1) and Kueue's (kueue.x-k8s.io/v1beta1, v1beta2).
//
// A recording is what kubectl prints with -o json, of Jobs, pods and Workloads together or one after the other:
//
//	kubectl get jobs,pods,workloads -A -o json > now.json
//	kubectl get jobs -A -o json --watch > jobs.json        # one object after the other, for as long as it runs
//
// or what the API server sends: lists, and the events of watches ({"type": …, "object": …}), also with
// --output-watch-events. Of each object the last state counts, so a recording of days has Jobs that have long been
// deleted; states before it tell when a Job began, was suspended or evicted.
//
//		Job       creationTimestamp                                   Submit
//		          each pod's PodScheduled to its last container's end  runs; Work is what they cover together
//		          startTime to completionTime, Failed or Suspended     a run of which no pod tells
//		          parallelism (completions, if fewer) × one pod        GPUs, CPUMilli, MemBytes
//		          activeDeadlineSeconds, or Kueue's limit              Estimate
//		          namespace, queue                                     VC, Group
//		Workload  conditions Admitted to Evicted or Finished           a run of which neither pods nor Job tell
//		pods      without a Job: as one job each, or as the gang that a label names
//
//	  - Jobs that ask for no GPUs are left out and counted, by what they ask for in their place (MIG, shares, claims, other vendors'
//	    resources), and so are jobs that have not started or not ended.
//	  - A job that was evicted and admitted again has several runs, and waits between them: Kueue resets startTime then. A pod that has gone
//	    without telling when ran until its Job was suspended or its Workload evicted, else until the Job ended if it was one of the last.
//	    Where a run is known to be missing, the job is counted (Evicted).
//	  - A run that ends up to a minute before the Job does ends with the Job.
//	  - A gang runs while any of its pods does.
package kube
