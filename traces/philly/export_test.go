package philly

import "clustergym/traces"

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of the table of jobs.
func Sniff(head []byte) bool {
	return traces.HasHeader(head, names[:required], names[required:])
}
