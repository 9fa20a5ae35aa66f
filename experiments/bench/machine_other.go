//go:build !unix

package bench

import "time"

// processorTime is 0: this system is not asked for it.
func processorTime() time.Duration { return 0 }

// peakMemory is 0 likewise.
func peakMemory() float64 { return 0 }
