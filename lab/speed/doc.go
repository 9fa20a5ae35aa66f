// Package speed is gymctl speed: it measures the speed of the simulator, the environments, training, planning and the
// bridge on the machine at hand, each beside a peer or a limit that it measures in the same run.
package speed
