// Package rundir reads and writes run directories: config.yaml, progress.jsonl, event files for TensorBoard,
// checkpoints and best.json.
package rundir
