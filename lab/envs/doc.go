// Package envs knows every environment by its id: its settings, its workload, its page and its memory. The command line
// and the bridge make environments here, the bridge through a Registry that bounds what clients can ask for.
//
// It does not train and does not compare policies; package run does.
package envs
