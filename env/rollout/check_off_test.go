//go:build !invariants

package rollout_test

const checked = false
