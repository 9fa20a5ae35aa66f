//go:build !unix

package ranks

import "syscall"

// rawWrite returns nil: everything is written by the link's second goroutine.
func (*link) rawWrite() (syscall.RawConn, func(fd uintptr) bool) { return nil, nil }
