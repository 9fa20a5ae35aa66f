package benchmark

import (
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/simulator/policyname"
)

// Name is the benchmark's name.
const Name = "ClusterGym-Bench"

// Seeds is how many runs of an agent a row has.
const Seeds = 5

// Plays is how often a policy that draws at random plays each window.
const Plays = 5

// files are the versions with what is recorded of them.
//
//go:embed v1.yaml references.json bounds.json leaderboard.json v2.yaml references-v2.json leaderboard-v2.json
var files embed.FS

// Latest is the version that takes new rows.
const Latest = 2

// recordings are the files of what is recorded of each version: what scores refer to, and the leaderboard.
var recordings = map[int][2]string{
	1: {"references.json", "leaderboard.json"},
	2: {"references-v2.json", "leaderboard-v2.json"},
}

// The states of a version.
const (
	Open   = "open"   // rows are taken, and the seed of their windows is secret
	Closed = "closed" // the seed is in the file, and no rows are taken
)

// Version is the file of one version. It never changes but for its end: state, salt and seed.
type Version struct {
	Version int    `yaml:"version"`
	State   string `yaml:"state"`
	// Commitment is the hexadecimal SHA-256 of salt and seed, see Secret. They follow once the version is closed.
	Commitment string `yaml:"commitment"`
	Salt       string `yaml:"salt,omitempty"`
	Seed       string `yaml:"seed,omitempty"`
	// SealedDraws is how many sealed draws a task of the generated track has. Version 1 plays windows and has none.
	SealedDraws int    `yaml:"sealed_draws,omitempty"`
	Tasks       []Task `yaml:"tasks"`

	references map[string]Reference
}

// Task is what policies are scored on.
type Task struct {
	Name  string `yaml:"name"`
	Tests string `yaml:"tests"` // what it asks of a policy, in one sentence
	// Base is the embedded run that the task begins with, and the agent that learns it; Set changes its keys, as --set
	// does.
	Base string   `yaml:"base"`
	Set  []string `yaml:"set"`
	// Track is Generated or Recorded, "" in version 1, whose tasks are played on windows.
	Track string `yaml:"track,omitempty"`
	// Blocks is how many blocks of time the one stream of a recorded task has.
	Blocks int `yaml:"blocks,omitempty"`
	// Rules are the rules among which the best one is, without random play. They know what the rung says.
	Rules []string `yaml:"rules"`
	// Hash is that of everything that decides the development windows and their score, see Task.Digest.
	Hash string `yaml:"hash"`

	version, sealed int // of its version: the number, and that of sealed draws
}

// The tracks of tasks that are played on streams.
const (
	Generated = "generated" // independent draws of a generator
	Recorded  = "recorded"  // the test part of a public trace, in blocks of time
)

// Random is the policy whose score is 0.
var Random = policyname.Slots(config.Random)

// Reference is what the score of a task refers to, on one set of windows.
type Reference struct {
	Hash   string  `json:"hash"`             // of the task
	Sealed string  `json:"sealed,omitempty"` // the commitment of the secret, if the windows are sealed ones
	Random float64 `json:"random"`           // the mean of the metric over windows and plays
	Rule   string  `json:"rule"`             // the best rule, by development windows
	Best   float64 `json:"best"`             // its mean
	// RandomBy and BestBy are both by draw or block, of tasks that are played on streams: all policies play the same
	// ones, so that what makes a draw hard for all of them leaves the interval of a score.
	RandomBy []float64 `json:"random_by,omitempty"`
	BestBy   []float64 `json:"best_by,omitempty"`
}

// Score returns the score of a mean of the metric: 0 for random play, 1 for the best rule, exactly.
func (r *Reference) Score(mean float64) float64 { return (r.Random - mean) / (r.Random - r.Best) }

// check returns an error unless scores on t can refer to r, on the windows of the commitment sealed, "" = development
// ones.
func (r *Reference) check(t *Task, sealed string) error {
	switch {
	case r.Hash != t.Hash:
		return fmt.Errorf("task %s: its hash is %.12s…, and the task's is %.12s…", t.Name, r.Hash, t.Hash)
	case r.Sealed != sealed:
		return fmt.Errorf("task %s: what its scores refer to is of other windows: of the commitment %.12q, want %.12q",
			t.Name, r.Sealed, sealed)
	case !slices.Contains(t.Rules, r.Rule):
		return fmt.Errorf("task %s: %q is none of its rules", t.Name, r.Rule)
	case !(r.Best >= 0 && r.Best < r.Random && r.Random <= math.MaxFloat64):
		return fmt.Errorf("task %s: random play (%v) is not worse than the best rule, %s (%v), so that there is no scale",
			t.Name, r.Random, r.Rule, r.Best)
	case t.Track != "" && (len(r.RandomBy) != len(r.BestBy) || len(r.RandomBy) == 0):
		return fmt.Errorf("task %s: it has %d draws of random play and %d of the best rule, want as many of both", t.Name,
			len(r.RandomBy), len(r.BestBy))
	}
	return nil
}

// Current returns the version of new rows.
func Current() *Version { return Numbered(Latest) }

// Numbered returns version n, 1 to Latest.
func Numbered(n int) *Version {
	v, err := read(files, fmt.Sprintf("v%d.yaml", n), recordings[n][0])
	if err != nil {
		panic("benchmark: " + err.Error()) // impossible for embedded files, which a test reads
	}
	return v
}

// Labels returns the names of the versions, v1 to v<Latest>.
func Labels() (all []string) {
	for n := 1; n <= Latest; n++ {
		all = append(all, fmt.Sprintf("v%d", n))
	}
	return all
}

// Labelled returns the version called v1, v2 and so on; another name is a *fault.Mistake.
func Labelled(name string) (*Version, error) {
	i := slices.Index(Labels(), name)
	if i < 0 {
		return nil, fault.Mistakef("%s: got %q, want %s", fault.Key("version"), name, strings.Join(Labels(), " or "))
	}
	return Numbered(i + 1), nil
}

// read reads the file of a version and what is recorded of its development windows.
func read(fsys embed.FS, name, references string) (*Version, error) {
	v := &Version{}
	if err := configs.Decode(fsys, name, v); err != nil {
		return nil, err
	}
	for i := range v.Tasks {
		v.Tasks[i].version, v.Tasks[i].sealed = v.Version, v.SealedDraws
	}
	b, err := fsys.ReadFile(references)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &v.references); err != nil {
		return nil, fmt.Errorf("%s: %w", references, err)
	}
	return v, nil
}

// nameForm is the form of a task's name.
var nameForm = regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)*$`)

// hexForm is the form of a digest, a salt and a seed.
var hexForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Validate implements configs.Validator.
func (v *Version) Validate() error {
	var l fault.List
	l.Add(v.Version >= 1, "version", v.Version, "1 or more")
	l.Add(v.State == Open || v.State == Closed, "state", v.State, Open+" or "+Closed)
	l.Add(hexForm.MatchString(v.Commitment), "commitment", v.Commitment, "a SHA-256 in 64 hexadecimal digits")
	if v.State == Closed {
		s, err := v.revealed()
		l.Add(err == nil && s.Commitment() == v.Commitment, "seed", v.Seed, "with its salt, what the commitment was made of")
	} else {
		l.Add(v.Salt == "" && v.Seed == "", "seed", v.Seed, "nothing while the version is open")
	}
	l.Add(v.Version == 1 && v.SealedDraws == 0 || v.SealedDraws >= statistic.MinUnits, "sealed_draws", v.SealedDraws,
		fmt.Sprintf("%d or more, none in version 1", statistic.MinUnits))
	seen := map[string]bool{}
	for i := range v.Tasks {
		t := &v.Tasks[i]
		key := fmt.Sprintf("tasks[%d].", i)
		l.Add(v.Version == 1 && t.Track == "" || v.Version > 1 && (t.Track == Generated || t.Track == Recorded), key+"track",
			t.Track, Generated+" or "+Recorded+", none in version 1")
		l.Add((t.Track == Recorded) == (t.Blocks > 0), key+"blocks", t.Blocks, "a number of blocks of a recorded task")
		l.Add(nameForm.MatchString(t.Name) && !seen[t.Name], key+"name", t.Name,
			"words of small letters and digits joined by -, each name once")
		seen[t.Name] = true
		l.Add(t.Tests != "", key+"tests", t.Tests, "a sentence")
		l.Add(slices.Contains(configs.Runs(), t.Base), key+"base", t.Base, nearest.OneOf(t.Base, configs.Runs()))
		l.Add(len(t.Rules) > 0, key+"rules", t.Rules, "at least one rule")
		l.Add(hexForm.MatchString(t.Hash), key+"hash", t.Hash, "a SHA-256 in 64 hexadecimal digits")
	}
	return l.Err()
}

// Task returns the task called name; an unknown name is a *fault.Mistake.
func (v *Version) Task(name string) (*Task, error) {
	for i := range v.Tasks {
		if v.Tasks[i].Name == name {
			return &v.Tasks[i], nil
		}
	}
	if near := nearest.Name(name, v.Names()); near != "" {
		return nil, fault.Mistakef("task %q is unknown; did you mean %s?", name, near)
	}
	return nil, fault.Mistakef("task %q is unknown; gymctl benchmark list names the tasks", name)
}

// Names returns the names of the tasks in their order.
func (v *Version) Names() []string {
	var names []string
	for i := range v.Tasks {
		names = append(names, v.Tasks[i].Name)
	}
	return names
}

// Match returns the tasks that patterns choose, in the version's order: names, or patterns such as jobselect-*. No
// patterns choose all tasks. A pattern that chooses none is a *fault.Mistake.
func (v *Version) Match(patterns ...string) ([]*Task, error) {
	hit := make([]bool, len(v.Tasks))
	for _, p := range patterns {
		found := false
		for i := range v.Tasks {
			ok, err := path.Match(p, v.Tasks[i].Name)
			if err != nil {
				return nil, fault.Mistakef("tasks: %q is no pattern of names", p)
			}
			hit[i], found = hit[i] || ok, found || ok
		}
		if !found {
			if !strings.ContainsAny(p, `*?[\`) {
				_, err := v.Task(p)
				return nil, err
			}
			return nil, fault.Mistakef("tasks: %q chooses none; gymctl benchmark list names the tasks", p)
		}
	}
	var all []*Task
	for i := range v.Tasks {
		if hit[i] || len(patterns) == 0 {
			all = append(all, &v.Tasks[i])
		}
	}
	return all, nil
}

// streamed reports whether the tasks are played on streams.
func (v *Version) streamed() bool { return v.Version > 1 }

// Reference returns what scores on the development windows of t refer to; ok is false if it is not recorded.
func (v *Version) Reference(t *Task) (r Reference, ok bool) {
	r, ok = v.references[t.Name]
	return r, ok && r.check(t, "") == nil
}

// Config returns the run that learns the task on the development seed: a preset with the task's keys. Its test windows
// are the development windows.
func (t *Task) Config() (config.Config, error) {
	cfg, err := config.Preset(t.Base)
	if err != nil {
		return cfg, err
	}
	cfg.Eval.Policies = nil
	for _, set := range t.Set {
		if err := cfg.Set(set); err != nil {
			return cfg, fmt.Errorf("task %s: %s: %w", t.Name, set, err)
		}
	}
	cfg.Name = t.Name
	cfg.Eval.Policies = append([]string{Random}, t.Rules...)
	cfg.Eval.Seeds, cfg.Eval.Whole = Plays, false
	if t.Track == Generated {
		cfg.Eval.Seeds = 1 // one play of each of many draws
	}
	if err := cfg.Validate(); err != nil {
		return cfg, fmt.Errorf("task %s: %w", t.Name, err)
	}
	if cfg.Streamed() != (t.Track != "") || (cfg.Trace.File != "") != (t.Track == Recorded) {
		return cfg, fmt.Errorf("task %s: its run does not play the track %q", t.Name, t.Track)
	}
	return cfg, nil
}

// Units returns how many windows, episodes, draws or blocks of the task a split has. cfg is the task's configuration.
func (t *Task) Units(cfg *config.Config, split string) int {
	switch {
	case t.Track == Recorded:
		return t.Blocks
	case t.Track == Generated && split == Sealed:
		return t.sealed
	case t.Track == Generated:
		return cfg.Eval.Streams.Filled().Draws
	}
	return Windows(cfg)
}

// unit is what one of Units is called.
func (t *Task) unit() string {
	return map[string]string{"": "window", Generated: "draw", Recorded: "block"}[t.Track]
}

// Rung says in words what policies of cfg know of run times: "history (causal)".
func Rung(cfg *config.Config) string {
	if est := cfg.Estimates(); !est.IsZero() {
		return est.Label()
	}
	if cfg.Env.ID == "WorkerPlace-v1" {
		return "seen speeds (causal)"
	}
	return "whole graph (exact)"
}

// Windows returns how many windows or episodes of cfg are played.
func Windows(cfg *config.Config) int {
	if cfg.Simulated() {
		return cfg.Eval.Windows
	}
	return cfg.Eval.Episodes
}

// metric returns what cfg's environment counts.
func metric(cfg *config.Config) envs.Metric { return envs.Find(cfg.Env.ID).Metric }

// References returns what scores on the development windows refer to, by task.
func (v *Version) References() map[string]Reference { return v.references }

// Kwargs returns the arguments that make the task's environment for a client of the bridge: those that are not
// defaults, nested as in a configuration.
func (t *Task) Kwargs() (map[string]any, error) {
	cfg, err := t.Config()
	if err != nil {
		return nil, err
	}
	plain := config.For(cfg.Env.ID)
	own, err := sections(&cfg)
	if err != nil {
		return nil, err
	}
	defaults, err := sections(&plain)
	if err != nil {
		return nil, err
	}
	return differing(own, defaults), nil
}

// sections returns the keys of cfg that its environment takes.
func sections(cfg *config.Config) (map[string]any, error) {
	b, err := configs.JSON(cfg)
	if err != nil {
		return nil, err
	}
	var all struct {
		Env     map[string]any
		Trace   map[string]any
		Cluster string
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	delete(all.Env, "id")
	delete(all.Env, "args")
	if cfg.Descriptor().Takes.Jobs {
		all.Env["trace"] = all.Trace
	}
	if cfg.Descriptor().Takes.Cluster {
		all.Env["cluster"] = all.Cluster
	}
	return all.Env, nil
}

// differing returns the entries of own that are others in base.
func differing(own, base map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range own {
		was, ok := base[k]
		if sub, isMap := v.(map[string]any); isMap {
			old, _ := was.(map[string]any)
			if d := differing(sub, old); len(d) > 0 {
				out[k] = d
			}
			continue
		}
		if !ok || !reflect.DeepEqual(v, was) {
			out[k] = v
		}
	}
	return out
}
