// Package archtest holds the rules on who may import whom, as a test: the arrows between the packages of this
// module, the outside libraries that each folder may use, the few files that know Gorgonia, and the functions
// that would make results depend on more than seed and configuration. The tables stand in tables_test.go, to be
// changed together with docs/adr when a rule changes. The package has no code for others.
package archtest
