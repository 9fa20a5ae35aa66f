// Package tracetest tests all readers of traces together: every recorded file is recognised by the reader of its
// format, and by no other.
package tracetest
