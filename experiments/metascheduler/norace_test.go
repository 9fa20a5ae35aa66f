//go:build !race

package metascheduler

const raced = false
