// Package metascheduler reproduces a meta-learning scheduler: workers are placed by a policy that adapts inside learned
// models of speed. README.md lists which parts are published and which are ours.
package metascheduler
