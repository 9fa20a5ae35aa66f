package philly

// Sniff says whether head, the first bytes of a file, unpacked, is the beginning of the table of jobs.
func Sniff(head []byte) bool {
	return header(head, []string{names[colTime], names[colDuration], names[colGPUs], names[colVC]}, []string{names[colArea]})
}

// SniffAttempts says whether head, the first bytes of a file, unpacked, is the beginning of the table of
// attempts.
func SniffAttempts(head []byte) bool { return header(head, attemptNames, nil) }
