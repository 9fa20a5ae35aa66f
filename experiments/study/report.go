package study

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"clustergym/configs"
	"clustergym/internal/safefile"
	"clustergym/internal/texttable"
	labreport "clustergym/lab/report"
)

// Report is the outcome of an experiment.
type Report struct {
	Results *Results
	Study   *Study
	Plan    Plan
	Dir     string
	Commit  string
	Cells   int
	Missing int // cells that are not computed because Options.Only excludes them

	claims    []Claim
	notes     []string
	figures   []drawn
	deviation *Deviation
}

// Deviation returns how the figures differ from the recorded ones, nil if none are recorded.
func (r *Report) Deviation() *Deviation { return r.deviation }

// drawn is a finished figure.
type drawn struct{ name, title, svg string }

// report makes the tables and figures and writes the folder's files.
func report(s *Study, opt *Options, rows []Row, cells, missing int) (*Report, error) {
	res, err := aggregate(rows, s.Tables(opt.Plan))
	if err != nil {
		return nil, err
	}
	r, err := newReport(s, opt, res, cells, missing)
	if err != nil {
		return nil, err
	}
	return r, r.write()
}

// newReport makes the report of results.
func newReport(s *Study, opt *Options, res *Results, cells, missing int) (r *Report, err error) {
	r = &Report{Results: res, Study: s, Plan: opt.Plan, Dir: opt.Dir, Commit: opt.Commit, Cells: cells, Missing: missing}
	if s.Claims != nil {
		r.claims = s.Claims(opt.Plan)
	}
	if s.Notes != nil {
		r.notes = s.Notes(opt.Plan)
	}
	if s.Figures != nil {
		for _, f := range s.Figures(opt.Plan) {
			if svg := f.SVG(res); svg != "" {
				r.figures = append(r.figures, drawn{f.Name, f.Title, svg})
			}
		}
	}
	r.deviation, err = r.deviate()
	return r, err
}

// write writes the folder's files.
func (r *Report) write() error {
	var text, page bytes.Buffer
	if err := r.WriteTable(&text); err != nil {
		return err
	}
	if err := r.writePage(&page); err != nil {
		return err
	}
	results, err := r.resultsCSV()
	if err != nil {
		return err
	}
	rows, err := rowsCSV(r.Results.Rows, false)
	if err != nil {
		return err
	}
	timing, err := rowsCSV(r.Results.Rows, true)
	if err != nil {
		return err
	}
	files := map[string][]byte{"table.txt": text.Bytes(), "index.html": page.Bytes(), "results.csv": results,
		"rows.csv": rows, "timing.csv": timing}
	if err := os.MkdirAll(filepath.Join(r.Dir, "figures"), 0o755); err != nil {
		return err
	}
	for _, f := range r.figures {
		files[filepath.Join("figures", f.name+".svg")] = []byte(f.svg)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := safefile.Write(filepath.Join(r.Dir, name), files[name]); err != nil {
			return err
		}
	}
	return nil
}

// sheet is a table as text.
type sheet struct {
	title  string
	header []string
	lines  [][]string
	left   int    // number of columns with labels
	paper  []bool // by column: whether it is the paper's figure of the column before it
}

// with reports whether column i belongs to the one before it.
func (t *sheet) with(i int) bool { return t.paper[i] }

// sheet returns a table as text. With short set it leaves out what is Hidden, and a label that all lines share is in
// the title instead of a column.
func (r *Report) sheet(t *Table, short bool) *sheet {
	all := r.Results.lines[t.Name]
	s := &sheet{title: t.Title}
	var by, shared []string
	for _, b := range t.By {
		if short && len(all) > 1 && len(t.By) > 1 &&
			!slices.ContainsFunc(all, func(l Line) bool { return l.Labels[b] != all[0].Labels[b] }) {
			if v := all[0].Labels[b]; v != "" {
				shared = append(shared, b+" "+v)
			}
			continue
		}
		by = append(by, b)
	}
	if len(by) == 0 {
		by, shared = t.By, nil
	}
	if len(shared) > 0 {
		if before, ok := strings.CutSuffix(s.title, ")"); ok && strings.Contains(s.title, "(") {
			s.title = before + "; " + strings.Join(shared, ", ") + ")"
		} else {
			s.title += " (" + strings.Join(shared, ", ") + ")"
		}
	}
	s.header, s.left, s.paper = slices.Clone(by), len(by), make([]bool, len(by))
	paper := make([]bool, len(t.Columns))
	hidden := func(c *Column) bool { return short && c.Hidden }
	for i := range t.Columns {
		if hidden(&t.Columns[i]) {
			continue
		}
		s.header, s.paper = append(s.header, t.Columns[i].Title), append(s.paper, false)
		if paper[i] = slices.ContainsFunc(all, func(l Line) bool { return l.Cells[i].Paper != "" }); paper[i] {
			s.header, s.paper = append(s.header, "paper"), append(s.paper, true)
		}
	}
	for _, l := range all {
		var words []string
		for _, b := range by {
			words = append(words, l.Labels[b])
		}
		for i := range t.Columns {
			if hidden(&t.Columns[i]) {
				continue
			}
			words = append(words, t.Columns[i].Show(l.Cells[i]))
			if paper[i] {
				words = append(words, l.Cells[i].Paper)
			}
		}
		s.lines = append(s.lines, words)
	}
	return s
}

// claimed returns the table of the paper's figures beside ours as text.
func (r *Report) claimed() (header []string, lines [][]string) {
	for _, c := range r.claims {
		ours := "–"
		if v, col, ok := r.Results.Find(c.Table, c.Line, c.Column); ok {
			ours = col.Show(v)
		}
		lines = append(lines, []string{c.What, c.Paper, ours})
	}
	return []string{"effect", "paper", "here"}, lines
}

// facts returns keys and values that say what was run.
func (r *Report) facts() [][2]string {
	facts := [][2]string{{"source", r.Study.Cite}, {"mode", r.Plan.Mode()}}
	if r.Study.RunTimes != "" {
		facts = append(facts, [2]string{labreport.EstimatesKey, r.Study.RunTimes})
	}
	if r.Plan.Data != "" {
		facts = append(facts, [2]string{"data", r.Plan.Data})
	}
	if r.Plan.Seeds > 0 {
		facts = append(facts, [2]string{"seeds", strconv.Itoa(r.Plan.Seeds)})
	}
	for _, c := range r.Plan.changed() {
		facts = append(facts, [2]string{"changed", c.String()})
	}
	if r.Missing > 0 {
		facts = append(facts,
			[2]string{"cells", fmt.Sprintf("%d of %d are computed: the tables are not whole", r.Cells-r.Missing, r.Cells)})
	}
	return facts
}

// columns is the length of the longest line of table.txt.
const columns = 120

// WriteTable writes the whole report as text: facts, the paper's figures and ours, tables, notes and the deviation. No
// line is longer than 120 characters, nor than the terminal w is wide.
func (r *Report) WriteTable(w io.Writer) error {
	width := columns
	if n := texttable.WidthOf(w); n > 0 {
		width = min(width, n)
	}
	var b strings.Builder
	say := func(s string) { b.WriteString(texttable.Wrapped(s, width) + "\n") }
	say(r.Study.Title)
	for _, f := range r.facts() {
		say(fmt.Sprintf("%-9s %s", f[0], strings.Join(strings.Fields(f[1]), " ")))
	}
	alone := func(int) bool { return false }
	if len(r.claims) > 0 {
		b.WriteString("\nThe paper's figures, and ours\n\n")
		header, lines := r.claimed()
		if err := texttable.WriteBlocks(&b, width, header, lines, 2, alone); err != nil {
			return err
		}
	}
	for i := range r.Results.tables {
		t := r.sheet(&r.Results.tables[i], true)
		if len(t.lines) == 0 {
			continue
		}
		b.WriteString("\n")
		say(t.title)
		b.WriteString("\n")
		if err := texttable.WriteBlocks(&b, width, t.header, t.lines, t.left, t.with); err != nil {
			return err
		}
		for _, n := range r.Results.tables[i].Notes {
			say(n)
		}
	}
	hides := func(t Table) bool {
		return len(r.Results.lines[t.Name]) > 0 && slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Hidden })
	}
	if slices.ContainsFunc(r.Results.tables, hides) {
		b.WriteString("\n")
		say("index.html and results.csv have more columns.")
	}
	if len(r.notes) > 0 {
		b.WriteString("\n")
		for _, n := range r.notes {
			say(n)
		}
	}
	if s := r.deviation.String(); s != "" {
		b.WriteString("\n")
		say(strings.TrimSuffix(s, "\n"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// float formats v with all its digits.
func float(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// bound formats a bound of an interval for CSV, as "" if there is none.
func bound(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return float(v)
}

// resultsHeader is the header of results.csv and of expected.csv.
var resultsHeader = []string{"mode", "table", "line", "column", "metric", "stat", "value", "low", "high", "units",
	"runs", "paper", "commit"}

// resultsCSV returns every aggregated figure that does not measure the machine. Rows name the commit by its first 12
// digits.
func (r *Report) resultsCSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(resultsHeader) // w.Error returns the error
	r.each(func(t *Table, l *Line, c *Column, v Value) {
		_ = w.Write([]string{
			r.Plan.label(), t.Name, t.label(l.Labels), c.Title, c.Metric, string(c.stat()), float(v.Value), bound(v.Low),
			bound(v.High),
			strconv.Itoa(v.Units), strconv.Itoa(v.Runs), v.Paper, r.Commit[:min(12, len(r.Commit))],
		})
	})
	w.Flush()
	return b.Bytes(), w.Error()
}

// each calls fn with every figure that has a value and does not measure the machine.
func (r *Report) each(fn func(t *Table, l *Line, c *Column, v Value)) {
	for i := range r.Results.tables {
		t := &r.Results.tables[i]
		if slices.ContainsFunc(t.By, isTiming) {
			continue
		}
		for k := range r.Results.lines[t.Name] {
			l := &r.Results.lines[t.Name][k]
			for j := range t.Columns {
				if c := &t.Columns[j]; !isTiming(c.Metric) && !math.IsNaN(l.Cells[j].Value) {
					fn(t, l, c, l.Cells[j])
				}
			}
		}
	}
}

// rowsCSV returns all rows that measure the machine, or all others.
func rowsCSV(rows []Row, timing bool) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"table", "labels", "metric", "value"}) // w.Error returns the error
	for i := range rows {
		r := &rows[i]
		if r.Timing() != timing {
			continue
		}
		var labels []string
		for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
			labels = append(labels, k+"="+r.Labels[k])
		}
		_ = w.Write([]string{r.Table, strings.Join(labels, ";"), r.Metric, float(r.Value)})
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// MarshalJSON returns the document that gymctl experiment run --json prints.
func (r *Report) MarshalJSON() ([]byte, error) {
	type figure struct {
		Column string     `json:"column"`
		Metric string     `json:"metric"`
		Stat   Stat       `json:"stat"`
		Value  number     `json:"value"`
		CI95   *[2]number `json:"ci95,omitempty"`
		Units  int        `json:"units"`
		Runs   int        `json:"runs"`
		Paper  string     `json:"paper,omitempty"`
	}
	type line struct {
		Labels  map[string]string `json:"labels"`
		Figures []figure          `json:"figures"`
	}
	type table struct {
		Name  string `json:"name"`
		Title string `json:"title"`
		Lines []line `json:"lines"`
	}
	type claim struct {
		What  string `json:"effect"`
		Paper string `json:"paper"`
		Here  string `json:"here"`
	}
	type document struct {
		Name  string `json:"name"`
		Title string `json:"title"`
		Cite  string `json:"source"`
		Mode  string `json:"mode"`
		Data  string `json:"data,omitempty"`
		Seeds int    `json:"seeds,omitempty"`
		// Changed are the settings that are not the recorded ones.
		Changed   []configs.Change `json:"changed_settings,omitempty"`
		Dir       string           `json:"dir"`
		Commit    string           `json:"commit"`
		Cells     int              `json:"cells"`
		Missing   int              `json:"missing_cells"`
		Claims    []claim          `json:"claims"`
		Tables    []table          `json:"tables"`
		Notes     []string         `json:"notes"`
		Deviation *Deviation       `json:"deviation_from_expected,omitempty"`
	}
	d := document{
		Name: r.Study.Name, Title: r.Study.Title, Cite: r.Study.Cite, Mode: r.Plan.Mode(), Data: r.Plan.Data,
		Seeds: r.Plan.Seeds, Changed: r.Plan.changed(), Dir: r.Dir,
		Commit: r.Commit, Cells: r.Cells, Missing: r.Missing, Claims: []claim{}, Tables: []table{}, Notes: append([]string{},
			r.notes...), Deviation: r.deviation,
	}
	_, claims := r.claimed()
	for _, c := range claims {
		d.Claims = append(d.Claims, claim{c[0], c[1], c[2]})
	}
	for i := range r.Results.tables {
		t := &r.Results.tables[i]
		out := table{Name: t.Name, Title: t.Title, Lines: []line{}}
		for _, l := range r.Results.lines[t.Name] {
			ln := line{Labels: l.Labels}
			for j := range t.Columns {
				v, c := l.Cells[j], &t.Columns[j]
				f := figure{Column: c.Title, Metric: c.Metric, Stat: c.stat(), Value: number(v.Value), Units: v.Units, Runs: v.Runs,
					Paper: v.Paper}
				if v.Interval() {
					f.CI95 = &[2]number{number(v.Low), number(v.High)}
				}
				ln.Figures = append(ln.Figures, f)
			}
			out.Lines = append(out.Lines, ln)
		}
		d.Tables = append(d.Tables, out)
	}
	return json.Marshal(&d)
}
