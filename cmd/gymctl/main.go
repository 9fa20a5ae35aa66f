// Command gymctl trains, simulates and compares schedulers for GPU clusters. Its verbs are in internal/…, a package for
// each group of them; they turn flags into calls of package experiments, and print a table or one JSON document.
package main

import (
	"os"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/verbs"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr, verbs.All())) }
