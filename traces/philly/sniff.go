package philly

import "clustergym/traces"

// Sniff says whether head, the first bytes of a file, unpacked, is the beginning of the table of jobs.
func Sniff(head []byte) bool {
	return traces.HasHeader(head, names[:required], names[required:])
}

// SniffAttempts says whether head, the first bytes of a file, unpacked, is the beginning of the table of
// attempts.
func SniffAttempts(head []byte) bool { return traces.HasHeader(head, attemptNames, nil) }
