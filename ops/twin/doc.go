// Package twin forecasts what a real cluster will do: when each waiting job starts, when running ones end, when GPUs
// become free, and what would change with more nodes, fewer nodes, another order of the queue, or one job more.
//
// It brings the cluster's state into a simulator and plays on from there, many times. In each of these futures (draws)
// every job has a run time drawn from what a predictor says of it, given for how long it has run, and a model of the
// cluster's own scheduler decides. The quantiles over the draws are the forecast. What-ifs play the same draws (common
// random numbers), so that their difference from the base has far less noise than either.
//
// # What a draw is
//
// Run times are drawn for each job by itself and, in part, for each user's jobs of one name together (Config.Alike):
// jobs of one array are long or short together, and treating them as independent makes intervals too narrow. A time
// limit bounds a run time, because the cluster ends the job there. Jobs that arrive later are those of earlier days, at
// the same hour of the week.
//
// # What it does not know
//
// Owners' wishes for nodes, partitions, licences, reservations, quotas; preemption; nodes that fail or come back. Nodes
// that are down stay down.
//
// The draws follow from the seed, the job's ID and the number of the draw alone. The same state, settings and seed give
// the same forecast for any number of workers.
package twin
