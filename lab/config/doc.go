// Package config is the configuration of a run: environment, workload, cluster, agent, training and evaluation. It
// reads, changes and checks what presets, --set and config.yaml say, and estimates the memory that a training needs.
package config
