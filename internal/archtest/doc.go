// Package archtest holds the rules on who may import whom, as a test: the arrows between the packages of this
// module, the outside libraries that each folder may use, the few files that know Gorgonia, the functions that would
// make results depend on more than seed and configuration, and the size of a package. The tables are in
// tables_test.go; a rule that changes there changes in docs/adr too. The package has no code for others.
package archtest
