package options

import (
	"context"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/plain"
	"clustergym/internal/texttable"
	"clustergym/lab/workload"
)

// WithReading returns a context under which line, which may be nil, shows how many jobs of a trace have been read.
func WithReading(ctx context.Context, line *cli.Status, file string) context.Context {
	if line == nil {
		return ctx
	}
	return workload.WithReading(ctx, Reading(line, file))
}

// Reading returns a function that shows on line how many jobs of a trace have been read.
func Reading(line *cli.Status, file string) func(jobs int) {
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
