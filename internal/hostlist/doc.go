// Package hostlist reads and writes the lists in which Slurm names nodes, g[01-03,07]-ib,h1, and tasks of an array,
// 1-10:2,15%4. Both come from files and programs that may be faulty, so what a list can stand for is bounded.
package hostlist
