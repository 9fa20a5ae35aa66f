// Package sweep is gymctl sweep: it searches for settings by random draws and successive halving over runs of package
// run.
package sweep
