// Package simulate is gymctl sim: it runs schedulers on a workload and a cluster, and reports metrics as a table or
// JSON document, events as JSON lines, and schedules as an HTML page.
package simulate
