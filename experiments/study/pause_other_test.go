//go:build !unix

package study

import "os"

// pause would stop a process; here sending it fails, and the process goes on.
var pause, goOn os.Signal = os.Interrupt, os.Interrupt
