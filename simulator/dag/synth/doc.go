// Package synth generates task graphs and the platforms they run on.
//
// Graphs:
//
//	layered    about √n layers; each task has degree parents in the layer before on average, and some longer edges
//	fork-join  chains of fork-joins
//	erdos      every pair i < j is an edge with probability 2·degree/(n-1), so that a task has degree parents on average
//	           (at most all before it); several entries, exits and isolated tasks
//	training   steps of training a network of layers in pipeline stages with micro-batches, each stage on several data
//	           parallel replicas: forward and backward tasks, and per stage a reduction of gradients behind them
//	instances  erdos with counts and durations after tasks of Alibaba's cluster-trace-v2018 (Instances)
//
// Platforms have one of four distributions of speeds, and bandwidths that are equal, follow machines and racks, or
// are random; see PlatformConfig.
//
// All draws come from the generator that is passed in: equal seeds give equal bytes.
package synth
