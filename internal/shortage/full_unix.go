//go:build unix

package shortage

import "syscall"

// full are the errors of a disk without space.
var full = []error{syscall.ENOSPC, syscall.EDQUOT}
