package study

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"clustergym/configs"
	"clustergym/internal/fault"
)

// Plan says how an experiment is to be run.
type Plan struct {
	Quick   bool   // the short form, which shows the direction within two minutes
	Data    string // folder of recorded workloads; "" = only generated ones
	Seeds   int    // number of seeds; 0 = the study's own
	Workers int    // total number of goroutines; must not influence results
	// Agents are trained agents that play beside the study's policies, for studies with PlaysAgents. They are never part
	// of the recorded figures.
	Agents []Agent
	// Changes are what the user wants to be otherwise than in the study's experiment.yaml. Settings applies them.
	Changes Changes

	heard *heard // may be nil
	sent  bool   // it came with a task: its settings may name no files
}

// Agent is a trained agent that plays beside the policies of a study.
type Agent struct {
	Where string // the workload that it plays, as the study calls it
	Dir   string // run or checkpoint
}

// Mode returns "quick" or "full".
func (p Plan) Mode() string {
	if p.Quick {
		return "quick"
	}
	return "full"
}

// Sent reports whether p came to a worker with a task: what it names on this machine is then not the user's who started
// the worker, and no file may be opened for it but those of Data and of Agents.
func (p Plan) Sent() bool { return p.sent }

// label returns what results.csv and expected.csv call a run: its form, "--data" with recorded workloads, and "--set"
// with other settings than the recorded ones.
func (p Plan) label() string {
	label := p.Mode()
	if p.Data != "" {
		label += withData
	}
	if len(p.changed()) > 0 {
		label += " --set"
	}
	return label
}

// withData ends the label of runs with recorded workloads.
const withData = " --data"

// changed returns the settings that are not the recorded ones.
func (p Plan) changed() []configs.Change {
	if p.heard == nil {
		return nil
	}
	p.heard.mu.Lock()
	defer p.heard.mu.Unlock()
	return p.heard.changed
}

// SeedsOr returns the plan's number of seeds, or own if the plan has none.
func (p Plan) SeedsOr(own int) int {
	if p.Seeds > 0 {
		return p.Seeds
	}
	return own
}

// Study is one experiment: cells, each of which is computed once and kept, and tables made from their rows.
type Study struct {
	Name, Title, Cite string
	Takes             string // how long quick and full take, for people
	// RunTimes says what the policies of all tables know of run times, as sim.Estimates.Label does; "" = the tables say
	// it, or there is nothing to know.
	RunTimes string
	// PlaysAgents says that Cells and Tables heed Plan.Agents.
	PlaysAgents bool

	// Cells returns the units of work. A cell must follow those that it reads.
	Cells  func(Plan) ([]Cell, error)
	Tables func(Plan) []Table
	// The fields below may be nil.
	Figures  func(Plan) []Figure
	Claims   func(Plan) []Claim  // the paper's figures, and where ours are
	Notes    func(Plan) []string // how to read the tables
	Expected []byte              // expected.csv: the recorded figures; binaries have it packed with zstd
}

// Cell is a unit of work. Its rows are kept in the file that Key names. They are computed again only if Input has
// changed, or the input of a cell that this one reads.
type Cell struct {
	Key   string   // stable; words of letters, digits and ".,_+=@-", separated by "/"
	Input any      // encoded as JSON: everything on which the result depends, including a version of the method
	After []string // keys of the cells whose rows or files this one reads; they must precede it
	Alone bool     // no other cell runs at the same time, because this one measures time
	Run   func(ctx context.Context, b *Bench) ([]Row, error)
}

// Row is one number. Labels distinguish the rows of a table: policies and settings, but also seeds, graphs and windows.
type Row struct {
	Table  string
	Labels map[string]string
	Metric string
	Value  float64
}

// NewRow returns a row with labels, which are names and values in turn.
func NewRow(table, metric string, v float64, labels ...string) Row {
	m := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		m[labels[i]] = labels[i+1]
	}
	return Row{Table: table, Labels: m, Metric: metric, Value: v}
}

// RowOf returns a function that makes rows of a table with these labels.
func RowOf(table string, labels map[string]string) func(metric string, v float64) Row {
	return func(metric string, v float64) Row { return Row{Table: table, Labels: labels, Metric: metric, Value: v} }
}

// With returns a copy of labels with one more.
func With(labels map[string]string, name string, value any) map[string]string {
	own := maps.Clone(labels)
	own[name] = fmt.Sprint(value)
	return own
}

// Timing reports whether the row measures the machine: its metric or one of its labels is "timing" or begins with
// "timing_".
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

// isTiming reports whether name names a measurement of the machine.
func isTiming(name string) bool { return name == "timing" || strings.HasPrefix(name, "timing_") }

// Claim is a figure of the paper, to be shown beside ours.
type Claim struct {
	What   string            // the effect in words
	Paper  string            // as published; "–" if the paper has none
	Table  string            // the table of our figure
	Line   map[string]string // the labels of its line
	Column string            // the title of its column
}

// keys matches keys whose words are valid file names on all systems.
var keys = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.,_+=@-]*(/[A-Za-z0-9][A-Za-z0-9.,_+=@-]*)*$`)

// word matches what Word accepts.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

// Word reports whether a name can be a word of a cell's key: letters, digits and hyphens.
func Word(name string) bool { return word.MatchString(name) }

// check panics if the cells are inconsistent, which is an error of the program, unless the user has changed the
// settings of p.
func (s *Study) check(cells []Cell, p Plan) error {
	err := consistent(cells)
	if err == nil {
		return nil
	}
	if p.Changes.some() {
		return fault.Mistakef("with these settings %w; want each name and value of a list once, of letters, digits and -._=",
			err)
	}
	panic(fmt.Sprintf("study %s: %v", s.Name, err))
}

// consistent returns what is wrong with cells.
func consistent(cells []Cell) error {
	seen := map[string]bool{}
	for _, c := range cells {
		switch {
		case !keys.MatchString(c.Key):
			return fmt.Errorf("a cell is called %q", c.Key)
		case seen[c.Key]:
			return fmt.Errorf("two cells are called %q", c.Key)
		case c.Run == nil:
			return fmt.Errorf("cell %s does nothing", c.Key)
		}
		for _, a := range c.After {
			if !seen[a] {
				return fmt.Errorf("cell %s comes after %q, which does not stand before it", c.Key, a)
			}
		}
		seen[c.Key] = true
	}
	// A cell must not have the name of a folder of other cells.
	for _, c := range cells {
		key := c.Key
		for at := strings.LastIndexByte(key, '/'); at > 0; at = strings.LastIndexByte(key[:at], '/') {
			if seen[key[:at]] {
				return fmt.Errorf("cell %s is called like the folder of cell %s", key[:at], key)
			}
		}
	}
	return nil
}
