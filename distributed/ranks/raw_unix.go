//go:build unix

package ranks

import (
	"net"
	"syscall"
)

// rawWrite returns how to write to a TCP connection without waiting. A message that fits the socket's buffer then needs
// no second goroutine.
func (l *link) rawWrite() (syscall.RawConn, func(fd uintptr) bool) {
	tcp, ok := l.conn.(*net.TCPConn)
	if !ok {
		return nil, nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, nil
	}
	return raw, func(fd uintptr) bool {
		for {
			n, err := syscall.Write(int(fd), l.bytes) //nolint:gosec // a file descriptor
			switch err {
			case syscall.EINTR:
				continue
			case syscall.EAGAIN:
				return true
			}
			l.n, l.err = max(n, 0), err
			return true
		}
	}
}
