// Package distributed has work on many machines: a queue of tasks, and processes that train one agent together.
//
// Its packages, from the lowest up (written by go test ./internal/archtest -run TestMaps -update):
//
//   - ranks: joins processes, on one machine or on many, into a group that trains one agent together
//   - workqueue: spreads independent tasks over machines
package distributed
