//go:build !unix

package speed

import "time"

// processorTime returns 0: on this system the time is not read.
func processorTime() time.Duration { return 0 }

// peakMemory returns 0 for the same reason.
func peakMemory() float64 { return 0 }
