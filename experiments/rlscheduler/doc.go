// Package rlscheduler plays on the machine of RLScheduler (peer/rlscheduler): the rules of its table, a key tuned on
// the log's first part, and that key with a search, on its own ten windows, on windows that nobody was trained on, and
// on fresh logs. README.md has the figures and how they are made.
package rlscheduler
