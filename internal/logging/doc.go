// Package logging keeps a log from harming the program that writes it: a Writer never blocks, even if the other end of
// its pipe is not read; Bounded cuts every string, so that a client can neither fill the log nor forge a line; and a
// Throttle limits how often one kind of line is repeated.
package logging
