// Package dally reproduces Dally: delay scheduling with tuned timers, the machine of its authors' program, and an agent
// in place of the timers. README.md lists which parts are published and which are ours.
package dally
