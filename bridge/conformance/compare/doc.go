// Package compare reads and compares the values of replies: arrays of any encoding, rows of a batch, whole replies. It
// knows nothing of connections and claims, which are package conformance's.
package compare
