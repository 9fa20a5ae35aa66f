package benchmark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/plain"
	"clustergym/internal/safefile"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
)

// Row is a submission: what a policy reaches on the development windows of all tasks that it plays, and how to repeat
// it. It is the file of gymctl benchmark submit.
type Row struct {
	Results
	Author   string   `json:"author,omitempty"`
	About    string   `json:"about,omitempty"` // one sentence
	Commands []string `json:"commands"`        // that repeat it, training first
	Program  Program  `json:"program"`
	Digest   string   `json:"digest"` // the SHA-256 of the row with an empty digest
}

// Program is what a row was made with.
type Program struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// maxRow is the largest file of a row that is read, and maxRuns the most runs of a task.
const (
	maxRow  = 64 << 20
	maxRuns = 1000
)

// NewRow returns the row of results on the development windows. Results that break the protocol are a *fault.Mistake.
func (v *Version) NewRow(r *Results, author, about string, commands []string, made Program) (*Row, error) {
	row := &Row{Results: *r, Author: author, About: about, Commands: commands, Program: made}
	if err := v.valid(row); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	row.Digest = row.digest()
	return row, nil
}

// valid returns an error if a row cannot be one of this version.
func (v *Version) valid(r *Row) error {
	if err := v.check(&r.Results); err != nil {
		return err
	}
	if err := v.protocol(r); err != nil {
		return err
	}
	return v.possible(&r.Results)
}

// each calls do with every task of r, its results and its configuration, until an error, which it returns with the
// task's name.
func (v *Version) each(r *Results, do func(t *Task, res *TaskResult, cfg *config.Config) error) error {
	for i := range r.Tasks {
		t, err := v.Task(r.Tasks[i].Task)
		if err != nil {
			return err
		}
		cfg, err := t.Config()
		if err != nil {
			return err
		}
		if err := do(t, &r.Tasks[i], &cfg); err != nil {
			return fmt.Errorf("task %s: %w", t.Name, err)
		}
	}
	return nil
}

// protocol returns an error if a row, which check has passed, breaks a rule of the protocol that can be seen in it.
func (v *Version) protocol(r *Row) error {
	if r.Split != Development {
		return fmt.Errorf("its results are on %s windows; a row is submitted with those on %s windows", r.Split, Development)
	}
	if len(r.Commands) == 0 {
		return fmt.Errorf("want the commands that repeat the row")
	}
	return v.each(&r.Results, func(t *Task, res *TaskResult, cfg *config.Config) error {
		return res.protocol(&r.Policy, t, cfg)
	})
}

// protocol is Version.protocol for one task, whose configuration is cfg.
func (r *TaskResult) protocol(p *Policy, t *Task, cfg *config.Config) error {
	runs, one := len(r.Values), 1 // one run, or those of the protocol
	switch p.Kind {
	case KindRule:
		for _, s := range p.Set {
			if err := cfg.Set(s); err != nil {
				return fmt.Errorf("set %s: %w", s, err)
			}
		}
		rule, err := cfg.Rival(r.Policy)
		if err != nil {
			return err
		}
		if rule.Rollout != nil && rule.Rollout.Budget.Time > 0 {
			return fmt.Errorf("%s searches for %v a decision, which nobody can repeat; want a budget of plays", r.Policy,
				rule.Rollout.Budget.Time)
		}
		if r.Knows || rule.Hindsight || rule.Rule != nil && rule.Rule.Knows {
			return fmt.Errorf(
				"%s knows the windows beforehand, or what no policy of the rung sees; it is no row of the leaderboard", r.Policy)
		}
		if runs != 1 && runs != Plays {
			return fmt.Errorf("it has %d plays, want 1, or %d of a rule that draws", runs, Plays)
		}
		return nil
	case KindCheckpoint:
		for i, seed := range r.Seeds {
			if slices.Contains(r.Seeds[:i], seed) {
				return fmt.Errorf("seed %d is there twice, and a seed has one run", seed)
			}
		}
		if most := slices.Max(append([]int64{0}, r.Steps...)); most > cfg.Train.Steps {
			return fmt.Errorf("a run has learned for %d steps, want at most %d", most, cfg.Train.Steps)
		}
		one = Seeds
	case KindModel:
		one = Seeds
	}
	if r.Knows {
		return fmt.Errorf("%s knows the windows beforehand, which no rung allows", r.Policy)
	}
	if r.Tries > 1 && t.version == 1 { // later ones count them
		return fmt.Errorf("its program has begun to play %d times, and a row has one try; play in a new folder", r.Tries)
	}
	if runs != one && runs != Seeds {
		return fmt.Errorf("it has %s, want %d, one for each seed", plain.Count(runs, "run", "runs"), Seeds)
	}
	return nil
}

// digest returns the hash of the row without it.
func (r *Row) digest() string {
	plain := *r
	plain.Digest = ""
	return hashJSON(&plain)
}

// Write writes the row.
func (r *Row) Write(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return &fault.Mistake{Err: err}
	}
	return safefile.WriteJSON(name, r)
}

// ReadRow reads a row and checks it: its digest, the tasks' hashes, the numbers of runs and windows, what can be seen
// of the protocol, and that no value is better than possible. A row that was changed after it was made is a
// *fault.Mistake of one sentence.
func (v *Version) ReadRow(name string) (*Row, error) {
	b, err := ordinary.Read(name, maxRow)
	if err != nil {
		return nil, fault.Mistakef("row %s: %v", name, ordinary.Reason(err))
	}
	r := &Row{}
	if err := decode(b, r); err != nil {
		return nil, fault.Mistakef("row %s: it is no row, as gymctl benchmark submit writes it: %v", name, err)
	}
	if got := r.digest(); got != r.Digest {
		return nil,
			fault.Mistakef(
				"row %s: its hash does not match: it says %.12s…, and its contents have %.12s…, so it was changed after it was made", name, r.Digest, got)
	}
	if err := v.valid(r); err != nil {
		return nil, fault.Mistakef("row %s: %w", name, err)
	}
	return r, nil
}

// check returns an error if r cannot be results of this version.
func (v *Version) check(r *Results) error {
	if r.Format != resultsFormat {
		return fmt.Errorf("its format is %d, want %d", r.Format, resultsFormat)
	}
	if r.Version != v.Version {
		if r.Version < 1 || r.Version > Latest {
			return fmt.Errorf("it is of version %d of the benchmark, which this program does not have", r.Version)
		}
		return fmt.Errorf("it is of version %d of the benchmark, and version %d is played; use %s v%d", r.Version, v.Version,
			fault.Key("version"), r.Version)
	}
	if r.Split != Development && r.Split != Sealed {
		return fmt.Errorf("its split is %q, want %s or %s", r.Split, Development, Sealed)
	}
	if want := map[string]string{Sealed: v.Commitment}[r.Split]; r.Sealed != want {
		return fmt.Errorf("its %s windows are of the commitment %.12q, want %.12q", r.Split, r.Sealed, want)
	}
	if err := r.Policy.described(); err != nil {
		return err
	}
	if len(r.Tasks) == 0 {
		return fmt.Errorf("it has no tasks")
	}
	seen := map[string]bool{}
	if err := v.each(r, func(t *Task, res *TaskResult, cfg *config.Config) error {
		if seen[t.Name] {
			return errors.New("it is there twice")
		}
		seen[t.Name] = true
		if res.Hash != t.Hash {
			return fmt.Errorf("its hash is %.12s…, and the task's is %.12s…: it was played on other windows", res.Hash, t.Hash)
		}
		if r.Policy.Kind == KindExternal && !cfg.Simulated() {
			return fmt.Errorf("no program can play it over the bridge, for %s has no windows there; models play it", cfg.Env.ID)
		}
		return res.check(r.Policy.Kind, t.unit(), t.Units(cfg, r.Split))
	}); err != nil {
		return err
	}
	if r.Policy.Kind != KindExternal && r.Hash != r.policyHash("") { // that of a program covers its files
		return fmt.Errorf("its policy's hash is not that of what it says plays")
	}
	return nil
}

// check is Version.check for one task.
func (r *TaskResult) check(kind, unit string, units int) error {
	if len(r.Values) == 0 || len(r.Values) > maxRuns {
		return fmt.Errorf("it has %d runs, want 1 to %d", len(r.Values), maxRuns)
	}
	if r.Tries < 0 || r.Tries > 0 && kind != KindExternal {
		return fmt.Errorf("it has %d tries, and only programs, which can leave what they have begun, have any", r.Tries)
	}
	agents, seeds := 0, 0 // how many hashes and seeds there are
	switch kind {
	case KindCheckpoint:
		agents, seeds = len(r.Values), len(r.Values)
	case KindModel:
		agents = len(r.Values)
	}
	if len(r.Files) != agents || len(r.Seeds) != seeds || len(r.Steps) != seeds {
		return fmt.Errorf("its %d runs have %d hashes, %d seeds and %d numbers of steps, want %d, %d and %d", len(r.Values),
			len(r.Files), len(r.Seeds), len(r.Steps), agents, seeds, seeds)
	}
	for i, h := range r.Files {
		if !hexForm.MatchString(h) {
			return fmt.Errorf("run %d: its agent's hash is %.20q, want a SHA-256 in 64 hexadecimal digits", i+1, h)
		}
		if slices.Contains(r.Files[:i], h) {
			return fmt.Errorf("run %d is of an agent that has a run already", i+1)
		}
	}
	for i, run := range r.Values {
		if len(run) != units {
			return fmt.Errorf("a run has %d %ss, want %d", len(run), unit, units)
		}
		if slices.ContainsFunc(run, func(x float64) bool { return !(x >= 0) }) || math.IsInf(statistic.Mean(run), 0) {
			return fmt.Errorf("run %d: a value is no number of 0 or more, or the mean is none", i+1)
		}
	}
	return nil
}

// tolerance is the relative difference up to which two values count as equal: machines differ in the last bits.
const tolerance = 1e-9

// Compare returns a *fault.Mistake unless again, the same policy played again on the same windows, equals the row.
func (r *Row) Compare(again *Results) error {
	if again.Hash != r.Hash {
		return fault.Mistakef("row %s: its policy's hash is %.12s…, and what was played now has %.12s…: it is another policy",
			r.Policy.Name, r.Hash, again.Hash)
	}
	for i := range r.Tasks {
		was := &r.Tasks[i]
		now := again.Task(was.Task)
		if now == nil || len(now.Values) != len(was.Values) {
			return fault.Mistakef("row %s: task %s has %d runs, and they cannot be played again as such", r.Policy.Name,
				was.Task, len(was.Values))
		}
		for k := range was.Values {
			if len(now.Values[k]) != len(was.Values[k]) {
				return fault.Mistakef("row %s: task %s has %d windows, and playing it again gives %d", r.Policy.Name, was.Task,
					len(was.Values[k]), len(now.Values[k]))
			}
			for w, x := range was.Values[k] {
				if y := now.Values[k][w]; math.Abs(x-y) > tolerance*max(math.Abs(x), math.Abs(y)) {
					return fault.Mistakef("row %s: task %s, run %d, window %d: it says %v, and playing it again gives %v",
						r.Policy.Name, was.Task, k+1, w, x, y)
				}
			}
		}
	}
	return nil
}

// PlayedBy reports whether again was played by the row's policy. Recorded tasks have no sealed draws, so that again may
// lack them.
func (r *Row) PlayedBy(again *Results) bool {
	own := r.Results
	own.Tasks = slices.DeleteFunc(slices.Clone(r.Tasks), func(t TaskResult) bool { return again.Task(t.Task) == nil })
	if len(own.Tasks) == len(r.Tasks) || r.Policy.Kind == KindExternal {
		return again.Hash == r.Hash
	}
	return again.Hash == own.policyHash("")
}

// Board is the leaderboard of a version: rows on the development and on the sealed windows.
type Board struct {
	Format  int        `json:"format"`
	Version int        `json:"version"`
	Rows    []BoardRow `json:"rows"` // by name
}

// BoardRow is one row of it.
type BoardRow struct {
	Name     string             `json:"name"`
	Kind     string             `json:"kind"`
	Author   string             `json:"author,omitempty"`
	About    string             `json:"about,omitempty"`
	Plays    map[string]string  `json:"plays,omitempty"` // by task: the rules, where it is made of some
	Hash     string             `json:"policy_hash"`
	Row      string             `json:"row_digest"`
	Commands []string           `json:"commands"`
	Program  Program            `json:"program"`
	Opened   string             `json:"opened,omitempty"` // the day on which it was played on the sealed windows
	Dev      map[string]Reached `json:"development"`
	Sealed   map[string]Reached `json:"sealed,omitempty"`
	Tries    int                `json:"tries,omitempty"` // the most of a task, if a program began again
	// The 95 % intervals of the mean scores, rounded, in versions that are played on streams.
	DevCI95    map[string]statistic.Interval `json:"development_ci95,omitempty"`
	SealedCI95 map[string]statistic.Interval `json:"sealed_ci95,omitempty"`
}

// Reached is the scores of a task's runs, rounded to four decimal places.
type Reached []float64

// Scores returns the scores of results by task, one for each run. of returns the reference of a task.
func (r *Results) Scores(of func(task string) (Reference, bool)) (map[string]Reached, error) {
	all := map[string]Reached{}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		ref, ok := of(t.Task)
		if !ok {
			return nil, fault.Mistakef("task %s: there is nothing recorded that its score could refer to", t.Task)
		}
		means := t.Means()
		if t.Policy == Random { // its plays together are the 0 of the scale
			means = []float64{statistic.Mean(means)}
		}
		for _, m := range means {
			all[t.Task] = append(all[t.Task], math.Round(ref.Score(m)*1e4)/1e4+0) // no negative zero
		}
	}
	return all, nil
}

// Intervals returns the 95 % intervals of the mean scores of the tasks that are played on streams, rounded: over their
// draws or blocks, on which random play and the best rule have played too, and over runs where there are several.
func (r *Results) Intervals(of func(task string) (Reference, bool)) map[string]statistic.Interval {
	var all map[string]statistic.Interval
	for i := range r.Tasks {
		t := &r.Tasks[i]
		ref, ok := of(t.Task)
		if !ok || len(ref.RandomBy) == 0 || len(ref.RandomBy) != len(t.Values[0]) {
			continue
		}
		own, scale := t.byUnit(), make([]float64, len(ref.RandomBy))
		for k := range own {
			own[k], scale[k] = ref.RandomBy[k]-own[k], ref.RandomBy[k]-ref.BestBy[k]
		}
		score, _, ci := statistic.Quotient95(own, scale)
		if n := len(t.Values); n > 1 && t.Policy != Random {
			squares := 0.0
			for _, m := range t.Means() {
				squares += (ref.Score(m) - score) * (ref.Score(m) - score)
			}
			wide := statistic.StudentQuantile(.975, float64(n-1)) * math.Sqrt(squares/float64(n-1)/float64(n))
			ci = statistic.Interval{score - math.Hypot(score-ci[0], wide), score + math.Hypot(ci[1]-score, wide)}
		}
		for k := range ci {
			ci[k] = math.Round(ci[k]*1e4)/1e4 + 0
		}
		if all == nil {
			all = map[string]statistic.Interval{}
		}
		all[t.Task] = ci
	}
	return all
}

// NewReferences returns what scores refer to by the results of all rules on the same windows: of every task random play
// and the best of its rules. With best set, the best rule is the one recorded there, which was chosen on development
// windows. Results are of one split.
func (v *Version) NewReferences(results []*Results, best map[string]Reference) (map[string]Reference, error) {
	all := map[string]Reference{}
	for i := range v.Tasks {
		t := &v.Tasks[i]
		means, by, sealed := map[string]float64{}, map[string][]float64{}, "" // by rule
		for _, r := range results {
			if res := r.Task(t.Name); res != nil && r.Policy.Kind == KindRule && len(r.Policy.Set) == 0 {
				means[res.Policy], by[res.Policy], sealed = statistic.Mean(res.Means()), res.byUnit(), r.Sealed
			}
		}
		ref := Reference{Hash: t.Hash, Sealed: sealed, Random: math.NaN(), Best: math.NaN()}
		if m, ok := means[Random]; ok {
			ref.Random = m
		}
		cfg, err := t.Config()
		if err != nil {
			return nil, err
		}
		for _, rule := range t.Rules { // of equal ones the first
			full := rule // results have the whole name: fifo+easy is fifo+strict+easy
			if p, err := cfg.Rival(rule); err == nil {
				full = p.Name
			}
			if m, ok := means[full]; ok && (best == nil && !(m >= ref.Best) || best != nil && rule == best[t.Name].Rule) {
				ref.Rule, ref.Best, ref.BestBy = rule, m, by[full]
			}
		}
		if math.IsNaN(ref.Random) || math.IsNaN(ref.Best) {
			continue
		}
		if ref.RandomBy = by[Random]; t.Track == "" {
			ref.RandomBy, ref.BestBy = nil, nil
		}
		if err := ref.check(t, sealed); err != nil {
			return nil, err
		}
		all[t.Name] = ref
	}
	return all, nil
}

// Leaderboard returns the recorded leaderboard of the version.
func (v *Version) Leaderboard() (*Board, error) {
	name := recordings[v.Version][1]
	b, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return decodeBoard(name, b)
}

// ReadBoard reads a leaderboard.
func ReadBoard(name string) (*Board, error) {
	b, err := ordinary.Read(name, ordinary.Document)
	if err != nil {
		return nil, fault.Mistakef("leaderboard %s: %v", name, ordinary.Reason(err))
	}
	return decodeBoard(name, b)
}

// decode decodes b, which must be one JSON object with keys of v alone.
func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is more after it, want one JSON object in the file")
	}
	return nil
}

func decodeBoard(name string, b []byte) (*Board, error) {
	board := &Board{}
	if err := decode(b, board); err != nil {
		return nil, fault.Mistakef("leaderboard %s: %v", name, err)
	}
	if board.Format != resultsFormat {
		return nil, fault.Mistakef("leaderboard %s: its format is %d, want %d", name, board.Format, resultsFormat)
	}
	return board, nil
}

// Takes returns a *fault.Mistake if r cannot come into the leaderboard: that is of another version, or has a row of its
// name that somebody else made.
func (b *Board) Takes(r *Row) error {
	if b.Version != r.Version {
		return fault.Mistakef("the leaderboard is of version %d, and row %s of version %d", b.Version, r.Policy.Name,
			r.Version)
	}
	for i := range b.Rows {
		if had := &b.Rows[i]; had.Name == r.Policy.Name && (had.Author != r.Author || had.Kind != r.Policy.Kind) {
			return fault.Mistakef(
				"the leaderboard has a row %s of kind %s by %q, and this one is of kind %s by %q; want another name", had.Name,
				had.Kind, had.Author, r.Policy.Kind, r.Author)
		}
	}
	return nil
}

// Put puts a row into the leaderboard, in place of one with its name. day is when it was played on the sealed windows,
// zero = it was not.
func (b *Board) Put(r *Row, dev, sealed Entry, day time.Time) {
	row := BoardRow{
		Name: r.Policy.Name, Kind: r.Policy.Kind, Author: r.Author, About: r.About, Hash: r.Hash, Row: r.Digest,
		Commands: r.Commands, Program: r.Program,
		Dev: dev.Scores, Sealed: sealed.Scores, DevCI95: dev.CI95, SealedCI95: sealed.CI95, Tries: dev.Tries,
	}
	if r.Policy.Kind == KindRule {
		row.Plays = map[string]string{}
		for _, t := range r.Tasks {
			row.Plays[t.Task] = t.Policy
		}
	}
	if !day.IsZero() {
		row.Opened = day.UTC().Format(time.DateOnly)
	}
	b.Rows = slices.DeleteFunc(b.Rows, func(x BoardRow) bool { return x.Name == row.Name })
	b.Rows = append(b.Rows, row)
	slices.SortFunc(b.Rows, func(x, y BoardRow) int { return strings.Compare(x.Name, y.Name) })
}

// Write writes the leaderboard.
func (b *Board) Write(name string) error { return safefile.WriteJSON(name, b) }

// ReadReferences reads what scores on the sealed windows of v refer to, by task. Those of other windows are refused.
func (v *Version) ReadReferences(name string) (map[string]Reference, error) {
	b, err := ordinary.Read(name, ordinary.Document)
	if err != nil {
		return nil, fault.Mistakef("references %s: %v", name, ordinary.Reason(err))
	}
	var all map[string]Reference
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fault.Mistakef("references %s: %v", name, err)
	}
	for task, ref := range all {
		t, err := v.Task(task)
		if err == nil {
			err = ref.check(t, v.Commitment)
		}
		if err != nil {
			return nil, fault.Mistakef("references %s: %w", name, err)
		}
	}
	return all, nil
}
