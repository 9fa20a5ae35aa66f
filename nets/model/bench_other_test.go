//go:build !unix

package model

import "time"

// processor returns 0: the time that a process has computed for is unknown.
func processor() time.Duration { return 0 }
