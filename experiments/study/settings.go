package study

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"clustergym/configs"
	"clustergym/internal/fault"
)

// Changes are a user's changes of a study's settings. The file comes first, then Set in order.
type Changes struct {
	File string   `json:"file,omitempty"` // name of the file, for errors
	Text string   `json:"text,omitempty"` // its content: keys of one form's settings
	Set  []string `json:"set,omitempty"`  // KEY.PATH=VALUE, as configs.Set takes them
}

// some reports whether there are changes.
func (c *Changes) some() bool { return c.File != "" || c.Text != "" || len(c.Set) > 0 }

// apply changes and validates cfg. An error is the user's mistake and names the file and line, or the change of Set,
// that is at fault.
func (c *Changes) apply(cfg configs.Validator) error {
	if c.File != "" || c.Text != "" {
		if err := configs.DecodeBytes(c.File, []byte(c.Text), cfg); err != nil {
			return &fault.Mistake{Err: err}
		}
	}
	given := make([][]string, len(c.Set)) // keys, by change
	for i, set := range c.Set {
		keys, err := configs.SetKeys(cfg, set)
		if err != nil {
			return fault.Mistakef("%w: %w", c.set(i), withKnown(err, cfg))
		}
		given[i] = keys
	}
	err := cfg.Validate()
	if err == nil {
		return nil
	}
	all := fault.All(err)
	if len(all) == 0 {
		return fault.Mistakef("%w: %w", c.blame("", given), err)
	}
	errs := make([]error, len(all))
	for i, f := range all {
		errs[i] = fault.Errorf("%w: %w", c.blame(f.Key, given), f)
	}
	return &fault.Mistake{Err: errors.Join(errs...)}
}

// blame names the last change of Set that gave key, a key around it or one inside it. If there is none, it names the
// only one, or all changes.
func (c *Changes) blame(key string, given [][]string) error {
	best, shared := -1, 0
	for i := range given {
		for _, g := range given[i] {
			if n := common(key, g); n > 0 && n >= shared {
				best, shared = i, n
			}
		}
	}
	switch {
	case best >= 0:
		return c.set(best)
	case len(c.Set) == 1:
		return c.set(0)
	case len(c.Set) > 1:
		return fault.Errorf("%s", fault.Key("set"))
	}
	return errors.New(c.File)
}

// set names a change of Set.
func (c *Changes) set(i int) error { return fault.Errorf("%s %q", fault.Key("set"), c.Set[i]) }

// common returns the number of characters of the shorter of two paths if it is the other one or around it, else 0.
func common(a, b string) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	if a != "" && strings.HasPrefix(b, a) && (len(a) == len(b) || b[len(a)] == '.' || b[len(a)] == '[') {
		return len(a)
	}
	return 0
}

// withKnown adds the known keys to an error that names only the nearest one.
func withKnown(err error, cfg configs.Validator) error {
	key, _, near := strings.Cut(err.Error(), ": unknown key; did you mean ")
	if !near || strings.ContainsAny(key, ".[") {
		return err
	}
	var names []string
	for _, key := range configs.AllKeys(cfg) {
		name, _, _ := strings.Cut(key, ".")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return fmt.Errorf("%w Known are %s", err, strings.Join(names, ", "))
}

// SetElsewhere adds a fault for every key in which own, the run that the settings hold under key, differs from base
// although the study sets that key itself. fixed says for each such key of the run what sets it.
func SetElsewhere(l *fault.List, key string, base, own any, fixed map[string]string) {
	changes, err := configs.Diff(base, own)
	if err != nil {
		l.Join(key, err)
		return
	}
	for _, c := range changes {
		for _, k := range slices.Sorted(maps.Keys(fixed)) {
			if n := common(c.Key, k); n == len(k) {
				l.Join(key,
					&fault.Fault{Key: c.Key, Value: cmp.Or(c.To, "nothing"),
						Want: fmt.Sprintf("%s: %s sets it", cmp.Or(c.From, "nothing"), fixed[k])})
				break
			}
		}
	}
}

// heard is what Settings was asked and what it answered, for a plan that Run or ShowSettings made.
type heard struct {
	only bool // Settings returns errOnly, so that Study.Cells ends

	mu       sync.Mutex
	asked    bool
	settings configs.Validator // in effect
	recorded configs.Validator
	file     []byte
	parts    []Part
	changed  []configs.Change
}

// Part is an embedded file that holds the defaults of a key of the settings, such as the run that trains an agent.
type Part struct {
	Key  string
	File []byte
}

// errOnly ends a call of Study.Cells whose settings alone are wanted.
var errOnly = errors.New("only the settings were wanted")

// Settings returns the settings of p's form from experiment.yaml, whose sections "quick" and "full" hold the settings
// of a study's two forms, after the changes of p. T is a plain struct whose pointer implements configs.Validator. Keys
// that a section leaves out have the values of defaults, of which parts are the files. A study must call it before all
// else in Cells, and must read its settings nowhere else.
func Settings[T any, P interface {
	*T
	configs.Validator
}](name string, files fs.FS, p Plan, defaults T, parts ...Part) (T, error) {
	file, err := fs.ReadFile(files, "experiment.yaml")
	if err != nil {
		return defaults, fmt.Errorf("study %s: %w", name, err)
	}
	both := sections[T, P]{Quick: defaults, Full: defaults}
	if err := configs.DecodeBytes(name+"/experiment.yaml", file, &both); err != nil {
		return defaults, fmt.Errorf("study %s: %w", name, err)
	}
	recorded := both.Full
	if p.Quick {
		recorded = both.Quick
	}
	own := recorded
	if p.Changes.some() {
		if err := p.Changes.apply(P(&own)); err != nil {
			return recorded, err
		}
		if p.sent {
			if err := unsent(P(&recorded), P(&own)); err != nil {
				return recorded, err
			}
		}
	}
	if h := p.heard; h != nil {
		changed, err := configs.Diff(recorded, own)
		if err != nil {
			return recorded, err
		}
		for _, c := range changed {
			if c.Key == "seeds" && p.Seeds > 0 { // the report would name seeds that nothing is run with
				return recorded, fault.Mistakef("seeds: got %s among the settings and %d by %s, want one of the two",
					c.To, p.Seeds, fault.Key("seeds"))
			}
		}
		h.mu.Lock()
		h.asked, h.settings, h.recorded, h.file, h.parts, h.changed = true, P(&own), P(&recorded), file, parts, changed
		h.mu.Unlock()
		if h.only {
			return own, errOnly
		}
	}
	return own, nil
}

// Shown are the settings of one form of a study.
type Shown struct {
	Study    Study
	Form     string            // quick or full
	Settings configs.Validator // with the plan's changes
	Changed  []configs.Change  // what is not as recorded
	text     []byte
}

// ShowSettings returns the settings of p's form after p's changes.
func ShowSettings(s Study, p Plan) (*Shown, error) {
	h := &heard{only: true}
	p.heard = h
	if _, err := s.Cells(p); err != nil && !errors.Is(err, errOnly) {
		return nil, err
	}
	if !h.asked {
		return nil, fault.Mistakef("experiment %s has no settings that can be changed", s.Name)
	}
	parts := map[string][]byte{}
	for _, part := range h.parts {
		parts[part.Key] = part.File
	}
	text, err := configs.Restate(h.file, p.Mode(), parts, h.recorded, h.settings)
	return &Shown{s, p.Mode(), h.settings, h.changed, text}, err
}

// YAML returns the settings with their comments, as Changes.Text takes them.
func (s *Shown) YAML() []byte {
	var b strings.Builder
	for _, c := range s.Changed {
		fmt.Fprintf(&b, "# changed: %s\n", strings.ReplaceAll(c.String(), "\n", " "))
	}
	return append(s.text, b.String()...)
}

// MarshalJSON returns the document that gymctl experiment show --json prints.
func (s *Shown) MarshalJSON() ([]byte, error) {
	text, err := configs.JSON(s.Settings)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Name     string           `json:"name"`
		Form     string           `json:"form"`
		Changed  []configs.Change `json:"changed_settings,omitempty"`
		Settings json.RawMessage  `json:"settings"`
	}{s.Study.Name, s.Form, s.Changed, text})
}

// sections holds the settings of the two forms of a study.
type sections[T any, P interface {
	*T
	configs.Validator
}] struct {
	Quick T `yaml:"quick"`
	Full  T `yaml:"full"`
}

// Validate implements configs.Validator.
func (s *sections[T, P]) Validate() error {
	if err := P(&s.Quick).Validate(); err != nil {
		return fmt.Errorf("quick: %w", err)
	}
	if err := P(&s.Full).Validate(); err != nil {
		return fmt.Errorf("full: %w", err)
	}
	return nil
}
