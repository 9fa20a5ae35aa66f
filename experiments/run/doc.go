// Package run is gymctl train, eval and sweep: it trains agents as a Config says, resumes them bit for bit, compares
// checkpoints with rivals on held-out windows or episodes, and owns the layout of run directories.
package run
