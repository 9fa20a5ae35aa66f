//go:build race

package metascheduler

const raced = true
