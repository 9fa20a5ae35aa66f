// Package sia reads the workloads of Pollux (Qiao et al., OSDI 2021) and Sia (Jayaram Subramanya et al., "Sia:
// Heterogeneity-aware, Goodput-optimized ML-cluster Scheduling", SOSP 2023). The repository of Sia's artifact states
// no licence at its root; its code comes from AdaptDL (Apache-2.0). The workloads are semi-synthetic: arrivals were
// sampled from the Philly trace (CC BY 4.0), from Helios' cluster Saturn (CC BY 4.0) or from a newer trace, and each
// job became one of a few applications by the GPU time that it had used. The header has these columns, in any order:
//
//	name          ID, as written
//	time          seconds since the origin                                              Submit
//	application   Model: the name of a folder of measurements, without the batch size
//	num_replicas  GPUs, for schedulers that do not resize the job
//	batch_size    examples in a batch on all GPUs together, likewise                    Batch
//	category      adaptive (as without the column), scale-gpus (the batch size stays) or rigid (the size stays too);
//	              checked, not used                                                     (optional)
//
// A workload says what is trained, not for how long: Work and Iterations are 0. A run
// time follows from an application's measurements: the iterations to the end of its training at batch_size, times the
// time of an iteration on num_replicas GPUs. The elastic range is not in the file either; it also follows from the
// measurements.
package sia
