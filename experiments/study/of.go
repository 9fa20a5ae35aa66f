package study

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
)

// Parts makes the parts of a study from settings of type S and the plan that they are of. All but Cells may be nil.
// Figures, claims and notes of report.yaml come before those of the functions; tables are there alone.
type Parts[S any] struct {
	Cells   func(*S, Plan) ([]Cell, error)
	Values  func(*S, Plan) map[string][]string    // what report.yaml names; those of a label are in the order of lines
	Formats map[string]func(value float64) string // of columns, by the names that report.yaml uses
	Figures func(*S, Plan) []Figure
	Claims  func(*S, Plan) []Claim
	Notes   func(*S, Plan) []string
}

// Of returns s with the parts that settings make. files are embedded: report.yaml, if there is one, and
// expected.csv.zst. planned returns the settings of a plan; if it fails, Cells reports that, and the other parts are
// made from the zero value of S.
func Of[S any](s Study, files fs.FS, planned func(Plan) (S, error), parts Parts[S]) Study {
	read := sync.OnceValue(func() *layout { return readLayout(s.Name, fileIn(files, "report.yaml")) })
	s.Expected = fileIn(files, "expected.csv.zst")
	values := func(own *S, p Plan) scope {
		v := scope{"why": {"there is no --data"}}
		if p.Data != "" {
			v["why"] = []string{p.Data + " does not have them"}
		}
		maps.Copy(v, read().Values)
		if parts.Values != nil {
			maps.Copy(v, parts.Values(own, p))
		}
		return v
	}
	s.Cells = func(p Plan) ([]Cell, error) {
		own, err := planned(p)
		if err != nil {
			return nil, err
		}
		return parts.Cells(&own, p)
	}
	s.Tables = joined(planned, nil, func(own *S, p Plan) []Table {
		return read().Tables.of(values(own, p), parts.Formats)
	})
	s.Figures = joined(planned, parts.Figures, func(own *S, p Plan) []Figure { return read().Figures.of(values(own, p)) })
	s.Claims = joined(planned, parts.Claims, func(own *S, p Plan) []Claim { return read().Claims.of(values(own, p)) })
	s.Notes = joined(planned, parts.Notes, func(own *S, p Plan) []string { return values(own, p).notes(read().Notes) })
	return s
}

// joined returns a function of a plan that returns what first makes of its settings and then, if it is not nil, more.
func joined[S, T any](planned func(Plan) (S, error), more, first func(*S, Plan) []T) func(Plan) []T {
	return func(p Plan) []T {
		own, err := planned(p)
		if err != nil {
			own = *new(S)
		}
		all := first(&own, p)
		if more != nil {
			all = slices.Concat(all, more(&own, p))
		}
		return all
	}
}

// fileIn returns the contents of a file of the program, nil if there is none.
func fileIn(files fs.FS, name string) []byte {
	b, err := fs.ReadFile(files, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	return b
}
