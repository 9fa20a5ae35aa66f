// Package expression compiles orders that users write out as text (policyname.Written):
//
//	key: wait / (estimate * gpus)
//	start if: gpus <= 8 or waiting_jobs < 100
//	stop if: ran > 3600
//
// The syntax is that of Expr (github.com/expr-lang/expr), whose parser reads it. What is computed is a part of that
// language: numbers, conditions and texts, their operators, and Functions, over Variables. There are no arrays except
// lists of constants behind in, no loops, no declarations, no clock of the machine and no chance, and nothing is read
// or written. So an expression ends after as many steps as it has signs, and gives the same result for the same state
// of a run.
//
// An expression is compiled once, with its types, into a tree of Go functions: no value is boxed, and nothing is
// allocated when it is evaluated. All numbers are float64. A division by zero is infinite, and 0/0 is not a number: an
// order with such a key ends the run with an error (Order.Err).
//
// The files: variables.go lists what an expression can look at, compile.go makes functions of a parsed expression,
// functions.go has those of numbers, order.go puts the clauses together.
package expression
