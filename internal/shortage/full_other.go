//go:build !unix

package shortage

import "syscall"

// full are the errors of a disk without space: also Windows' own, ERROR_DISK_FULL and ERROR_HANDLE_DISK_FULL.
var full = []error{syscall.ENOSPC, syscall.Errno(112), syscall.Errno(39)}
