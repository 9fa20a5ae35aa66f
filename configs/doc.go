// Package configs holds the YAML presets that are built into the binary, and the one strict loader for every
// configuration: defaults stand in the value already, unknown keys are errors, and all faults of a file are
// reported at once, each with file, line and key. It also applies single changes ("ppo.gamma=0.99") and writes
// the effective configuration, which decodes to the same value again.
//
// Configurations are plain structs with yaml tags, declared by the packages that they configure; this package
// knows none of them. It reads no environment variables and looks for no files on its own.
package configs
