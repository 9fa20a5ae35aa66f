package options

import (
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/plain"
	"clustergym/internal/texttable"
)

// Reading returns a function that shows on line how many jobs of a trace have been read.
func Reading(a *cli.App, line *cli.Status, file string) func(jobs int) {
	if file == "" {
		file = "generated jobs"
	}
	return func(jobs int) {
		line.Show(func(width int) []string {
			what := plain.Count(jobs, "job", "jobs")
			return []string{"reading " + texttable.Short(file, max(12, width-len("reading ")-2-len(what))), what}
		})
	}
}
