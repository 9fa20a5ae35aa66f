// Package dally reproduces Dally: delay scheduling with tuned timers, its authors' machine, and an agent in place of the
// timers. README.md says which part is whose.
package dally
