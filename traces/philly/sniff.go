package philly

import "clustergym/traces"

// SniffAttempts reports whether head, the first bytes of an unpacked file, is the beginning of the table of attempts.
func SniffAttempts(head []byte) bool { return traces.HasHeader(head, attemptNames, nil) }
