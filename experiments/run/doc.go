// Package run is gymctl train and eval: it trains agents as a config.Config says, resumes them bit for bit, compares
// checkpoints with rivals on held-out windows or episodes, and owns the layout of run directories.
package run
