//go:build !unix

package lock

import "os"

// Supported reports whether this system has locks.
const Supported = false

// File does nothing: this system has no advisory locks on folders.
func File(*os.File) error { return nil }

// Shared does nothing either.
func Shared(*os.File) error { return nil }
