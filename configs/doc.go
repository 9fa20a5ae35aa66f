// Package configs holds the YAML presets that are built into the binary, and the strict loader for every configuration:
// the value passed in holds the defaults, unknown keys are errors, and all faults of a file are reported at once, each
// with file, line and key. The package also applies single changes ("ppo.gamma=0.99") and writes the effective
// configuration, which decodes to the same value again.
//
// Configurations are plain structs with yaml tags, declared by the packages that they configure; this package knows
// none of them. It reads no environment variables and searches for no files.
package configs
