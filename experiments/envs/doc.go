// Package envs knows every environment by its id: how it is configured, what it takes as a workload, its page, and how
// much memory it needs. The command line and the bridge make environments here, the bridge through a Registry that
// bounds what strangers can ask for.
//
// It does not train and does not compare policies; package run does.
package envs
