// Package archtest tests the rules on imports: which packages of this module may import which, the outside libraries
// that each folder may use, the few files that may use Gorgonia, the forbidden functions, which would make results
// depend on more than seed and configuration, and the size of a package. The tables are in tables_test.go; a change of
// a rule changes them together with docs/design/adr. The package exports nothing.
package archtest
