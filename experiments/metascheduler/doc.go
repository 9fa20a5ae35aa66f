// Package metascheduler reproduces the meta-learning scheduler: workers are placed by a policy that adapts inside learned
// models of speed. README.md says which part is whose.
package metascheduler
