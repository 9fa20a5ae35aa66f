package study

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// Plan is how an experiment is to be run.
type Plan struct {
	Quick   bool   // the short form, which shows the direction within two minutes
	Data    string // folder of real workloads; "" = generated ones only
	Seeds   int    // in place of the study's own number; 0 = that
	Workers int    // goroutines in all; it must not influence results
}

// Mode is "quick" or "full".
func (p Plan) Mode() string {
	if p.Quick {
		return "quick"
	}
	return "full"
}

// SeedsOr is the number of seeds: the plan's, or the study's own.
func (p Plan) SeedsOr(own int) int {
	if p.Seeds > 0 {
		return p.Seeds
	}
	return own
}

// Study is one experiment: cells that are computed once each and kept, and tables made from their rows.
type Study struct {
	Name, Title, Cite string
	Takes             string // how long quick and full take, for people

	// Cells are the pieces of work. A cell comes after those that it reads.
	Cells  func(Plan) ([]Cell, error)
	Tables func(Plan) []Table
	// What follows may be nil.
	Figures  func(Plan) []Figure
	Claims   func(Plan) []Claim  // the paper's figures, and where ours stand
	Notes    func(Plan) []string // how to read the tables
	Expected []byte              // expected.csv: what the figures were when they were written down
}

// Cell is a unit of work. Its rows are kept in the file that Key names, and computed again only when Input, or that
// of a cell which it reads, is another.
type Cell struct {
	Key   string   // stable; words of letters, digits and ".,_+=@-", parted by "/"
	Input any      // as JSON: everything on which the result depends, a version of the method included
	After []string // keys of the cells whose rows or files this one reads; they stand before it
	Alone bool     // nothing runs beside it: it measures time
	Run   func(ctx context.Context, b *Bench) ([]Row, error)
}

// Row is one number. What tells rows of a table apart are the labels: policies and settings, but seeds, graphs and
// windows as well.
type Row struct {
	Table  string
	Labels map[string]string
	Metric string
	Value  float64
}

// Timing says whether the row measures the machine, which is so when its metric or one of its labels is called
// timing or begins with "timing_".
func (r *Row) Timing() bool {
	if isTiming(r.Metric) {
		return true
	}
	for name := range r.Labels {
		if isTiming(name) {
			return true
		}
	}
	return false
}

func isTiming(name string) bool { return name == "timing" || strings.HasPrefix(name, "timing_") }

// Claim is a figure of the paper beside ours.
type Claim struct {
	What   string            // the effect in words
	Paper  string            // as published; "–" where the paper has none
	Table  string            // where ours stands,
	Line   map[string]string // in which line
	Column string            // and under which title
}

// InputError is a mistake of the user's: a key, a folder, a file.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap is Err.
func (e *InputError) Unwrap() error { return e.Err }

func mistake(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// keys are words that are good names of files everywhere.
var keys = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.,_+=@-]*(/[A-Za-z0-9][A-Za-z0-9.,_+=@-]*)*$`)

// check panics where a study is not well made: that is nobody's mistake but the program's.
func (s *Study) check(cells []Cell) {
	seen := map[string]bool{}
	for _, c := range cells {
		switch {
		case !keys.MatchString(c.Key):
			panic(fmt.Sprintf("study %s: a cell is called %q", s.Name, c.Key))
		case seen[c.Key]:
			panic(fmt.Sprintf("study %s: two cells are called %q", s.Name, c.Key))
		case c.Run == nil:
			panic(fmt.Sprintf("study %s: cell %s does nothing", s.Name, c.Key))
		}
		for _, a := range c.After {
			if !seen[a] {
				panic(fmt.Sprintf("study %s: cell %s comes after %q, which does not stand before it", s.Name, c.Key, a))
			}
		}
		seen[c.Key] = true
	}
	// One cell's file must not be another's folder.
	for key := range seen {
		for at := strings.LastIndexByte(key, '/'); at > 0; at = strings.LastIndexByte(key[:at], '/') {
			if seen[key[:at]] {
				panic(fmt.Sprintf("study %s: cell %s is called like the folder of cell %s", s.Name, key[:at], key))
			}
		}
	}
}
