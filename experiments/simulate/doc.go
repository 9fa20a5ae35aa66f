// Package simulate is gymctl sim: it runs schedulers over a workload on a cluster and reports metrics as a table, a JSON
// document, a stream of events or a page of schedules.
package simulate
