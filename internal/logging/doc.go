// Package logging keeps a log from harming the program that writes it: a Writer never blocks, even if nobody reads the
// other end of a pipe; Bounded cuts every string, so that nobody outside can fill the log or forge a line; and a Throttle
// limits how often one kind of line is repeated.
package logging
