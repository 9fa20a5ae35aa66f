package heuristic

import "clustergym/env/sim"

// fifo serves jobs in the order in which they were submitted (FCFS).
var fifo = rule{name: "fifo", key: func(_ *Scheduler, v *sim.View, j sim.Job) float64 { return float64(v.Pos(j)) }}
