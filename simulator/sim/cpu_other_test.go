//go:build !unix

package sim_test

import "time"

var began = time.Now()

// cpuTime returns the time that has passed.
func cpuTime() time.Duration { return time.Since(began) }
