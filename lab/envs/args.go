package envs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"clustergym/bridge/wire"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Args are the arguments of an environment: its settings, and the workload and cluster as far as it takes them.
type Args struct {
	Settings Settings             `yaml:",inline"`
	Cluster  string               `yaml:"cluster"` // see workload.ClusterForms
	Trace    workload.TraceConfig `yaml:"trace"`
	// the part of the workload that episodes are drawn from: a value of env.Episode.Split
	Split string `yaml:"split"`
	// an embedded run whose trace, cluster and settings replace the defaults; "" = none
	Preset string `yaml:"preset,omitempty"`

	d     *Descriptor
	given *cluster.Spec // the cluster that a client described, in place of the one called Cluster; nil = none
}

// SplitNames are the names of the parts in env.Episode.Split, by traces.Part.
var SplitNames = [...]string{traces.Training: env.SplitTrain, traces.Validation: env.SplitValidation,
	traces.Test: env.SplitTest}

// Args returns the default arguments.
func (d *Descriptor) Args() *Args {
	a := &Args{d: d, Cluster: workload.DefaultCluster, Trace: workload.DefaultTraceConfig(), Split: env.SplitTrain}
	if d.HasSettings() {
		a.Settings = d.Settings()
	}
	if d.Takes.Cluster {
		a.Cluster = d.Cluster
	}
	if d.Trace != nil {
		a.Trace = d.Trace()
	}
	return a
}

// Validate reports every fault. It does not check whether files exist.
func (a *Args) Validate() error {
	var l fault.List
	if a.Settings != nil {
		l.Join("", a.Settings.Validate())
	}
	t := a.d.Takes
	if t.Cluster {
		l.Add(a.Cluster != "", "cluster", a.Cluster, workload.ClusterForms)
	}
	a.d.Foreign(a.Trace, a.Cluster, func(key string, v any, want string) { l.Add(false, key, v, want) })
	if t.Trace() != "" {
		l.Join("trace", a.Trace.Validate())
		l.Add(slices.Contains(SplitNames[:], a.Split), "split", a.Split, nearest.OneOf(a.Split, SplitNames[:]))
	} else {
		l.Add(a.Split == env.SplitTrain, "split", a.Split, "nothing: "+a.d.ID+" has no workload")
	}
	presets := a.d.Presets()
	if len(presets) > 0 {
		l.Add(a.Preset == "" || slices.Contains(presets, a.Preset), "preset", a.Preset,
			"one of "+strings.Join(presets, ", ")+", or nothing"+nearest.Meant(a.Preset, presets))
	} else {
		l.Add(a.Preset == "", "preset", a.Preset, "nothing: "+a.d.ID+" has no presets")
	}
	return l.Err()
}

// acceptKey is of environments of version 2: those of version 1 take what is left of every trace.
const acceptKey = "trace.accept_left_out"

// TakesKey returns whether the environment takes a key of the workload: cluster, split or a key below trace.
func (d *Descriptor) TakesKey(key string) bool {
	t := d.Takes
	switch {
	case key == acceptKey:
		return t.Jobs && d.Ongoing
	case key == "cluster":
		return t.Cluster
	case key == "split":
		return t.Trace() != ""
	case t.Graphs:
		return key == "trace.file"
	case t.Models:
		return key != "trace.limit" && key != "trace.synth" && !strings.HasPrefix(key, "trace.synth.")
	}
	return t.Jobs
}

// Foreign calls found for every key of the workload and the cluster that the environment does not take and that differs
// from its default. want says why it is refused.
func (d *Descriptor) Foreign(trace workload.TraceConfig, cluster string, found func(key string, v any, want string)) {
	if cluster != workload.DefaultCluster && !d.Takes.Cluster {
		want := "nothing: " + d.ID + " has no cluster"
		if d.Scheduling() {
			want += "; its settings say what runs where"
		}
		found("cluster", cluster, want)
	}
	given := map[string]any{}
	walkKeys(reflect.ValueOf(&trace).Elem(), "trace.", func(key string, v reflect.Value) { given[key] = v.Interface() })
	plain := workload.DefaultTraceConfig()
	walkKeys(reflect.ValueOf(&plain).Elem(), "trace.", func(key string, v reflect.Value) {
		if d.TakesKey(key) || reflect.DeepEqual(given[key], v.Interface()) {
			return
		}
		want := "nothing: " + d.ID + " has no workload"
		switch {
		case key == acceptKey && d.Takes.Jobs:
			want = "nothing: " + d.ID + " takes what is left of every trace"
		case d.Takes.Graphs:
			want = "nothing: " + d.ID + " takes " + d.Takes.Trace() + ", by trace.file alone"
		case d.Takes.Models:
			want = "nothing: " + d.ID + " generates its own jobs, or takes a file of " + d.Takes.Trace()
		}
		found(key, given[key], want)
	})
}

// part returns Split as a traces.Part.
func (a *Args) part() traces.Part { return traces.Part(slices.Index(SplitNames[:], a.Split)) }

// SHA returns a hash of everything that decides the episodes over w: the settings, the cluster, the part and the jobs,
// but not the names of files.
func (a *Args) SHA(w *Workload) (string, error) {
	if a.d.older != nil {
		a = &Args{Settings: a.d.older(a.Settings), Split: a.Split, d: Find(queuerank.V1)}
	}
	text, jobs := "", []byte(nil)
	var err error
	switch d := a.d; {
	case d.sha != nil:
		text, err = d.sha(a, w.Source.Cluster)
		jobs = w.Jobs[:]
	case d.Simulated():
		text, err = a.text(w.Source.Cluster)
		jobs = w.Jobs[:]
	case d.HasSettings():
		var b []byte
		b, err = configs.Encode(a.Settings)
		text = string(b)
		if w.sha != "" {
			text, jobs = text+"split: "+a.Split+"\n", []byte(w.sha)
		}
	}
	return ScenarioSHA(a.d.ID, text, jobs), err
}

// text returns everything but the jobs that decides the episodes. The settings of the trace are left out, because the
// jobs themselves are hashed.
func (a *Args) text(spec cluster.Spec) (string, error) {
	spec.Name = "" // it decides nothing
	text, err := configs.Encode(&Args{Settings: a.Settings, Split: a.Split, d: a.d})
	if err != nil {
		return "", err
	}
	hardware, err := configs.Encode(spec)
	return unnamed(string(text), a.d, a.Settings) + string(hardware), err
}

// jobSelectSHA returns the text for JobSelect-v1, which has an older form of its own.
func jobSelectSHA(c *jobselect.Config, a *Args, spec cluster.Spec) (string, error) {
	spec.Name = "" // it decides nothing
	text, err := configs.Encode(struct {
		Env     jobselect.Config `yaml:"env"`
		Cluster cluster.Spec     `yaml:"cluster"`
		Split   string           `yaml:"split"`
	}{*c, spec, a.Split})
	return unnamed(string(text), a.d, a.Settings), err
}

// ScenarioSHA returns the hash of a scenario: an environment, a text of its configuration, and its jobs.
func ScenarioSHA(id, config string, jobs []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "clustergym scenario 1\n%s\n%d\n%s", id, len(config), config)
	h.Write(jobs)
	return hex.EncodeToString(h.Sum(nil))
}

// decodeArgs reads the arguments of an environment from a client: keys with dots and nested maps alike; nil keeps a
// default. Errors are *wire.Errors of code bad_kwargs.
func decodeArgs(d *Descriptor, kwargs wire.Map) (*Args, error) {
	args := d.Args()
	if name, ok := kwargs.Get("preset").(string); ok && slices.Contains(d.Presets(), name) {
		if err := args.preset(name); err != nil {
			return args, err
		}
	}
	return args, graftArgs(kwargs, args)
}

// graftArgs sets args to a client's arguments.
func graftArgs(kwargs wire.Map, args *Args) error {
	tree := map[string]any{}
	for _, p := range kwargs {
		if m, ok := p.Value.(wire.Map); ok && p.Key == "cluster" {
			if err := args.describeCluster(m); err != nil {
				return badKwargs(err)
			}
			continue
		}
		if err := graft(tree, "", p.Key, p.Value); err != nil {
			return badKwargs(err)
		}
	}
	text, err := configs.Encode(tree)
	if err != nil {
		return badKwargs(err)
	}
	return badKwargs(configs.DecodeBytes("", text, args))
}

// Kwargs describes the arguments with the values of a as defaults, in order of declaration.
func (a *Args) Kwargs() []Kwarg {
	all := []Kwarg{}
	if !a.d.HasSettings() {
		return all
	}
	workloads := false
	walkKeys(reflect.ValueOf(a).Elem(), "", func(path string, v reflect.Value) {
		workloads = workloads || path == "cluster"
		if path == "preset" && len(a.d.Presets()) == 0 || workloads && path != "preset" && !a.d.TakesKey(path) {
			return
		}
		k := kwargOf(path, v, a.d.words(path))
		k.workload = workloads
		if path == "preset" {
			k.Want = strings.Join(a.d.Presets(), ", ") + ", or nothing"
		}
		all = append(all, k)
	})
	return all
}

// presetConfig is the workload, cluster and environment of an embedded run.
type presetConfig struct {
	Trace   workload.TraceConfig `yaml:"trace"`
	Cluster string               `yaml:"cluster"`
	Env     struct {
		ID       string   `yaml:"id"`
		Args     []string `yaml:"args"`
		Settings Settings `yaml:",inline"`
	} `yaml:"env"`
}

// Validate implements configs.Validator. The whole configuration is validated when it is run.
func (*presetConfig) Validate() error { return nil }

// preset replaces the arguments with those of the embedded run called name.
func (a *Args) preset(name string) error {
	c := presetConfig{Trace: a.Trace, Cluster: a.Cluster}
	c.Env.ID, c.Env.Settings = a.d.ID, a.Settings
	if err := configs.DecodeKeys(configs.Presets, name+".yaml", &c, "trace", "cluster", "env"); err != nil {
		return err
	}
	a.Trace, a.Cluster, a.Settings = c.Trace, c.Cluster, c.Env.Settings
	return nil
}

// presetIDs returns the environments of the embedded runs, by name.
var presetIDs = sync.OnceValue(func() map[string]string {
	ids := map[string]string{}
	for _, name := range configs.Runs() {
		id, err := configs.Text(configs.Presets, name+".yaml", "env", "id")
		if err != nil {
			panic(fmt.Sprintf("envs: embedded preset %s: %v", name, err)) // tests check every preset
		}
		if id == "" {
			id = jobselect.ID
		}
		ids[name] = id
	}
	return ids
})

// Presets returns the sorted names of the embedded runs of the environment, whose workload and settings clients can
// name. There are none if it takes no workload.
func (d *Descriptor) Presets() []string {
	if d.Takes.Trace() == "" {
		return nil
	}
	return slices.DeleteFunc(configs.Runs(), func(name string) bool { return presetIDs()[name] != d.ID })
}

// maxArgDepth is the maximum depth of nested arguments; the deepest argument has three levels.
const maxArgDepth = 8

// graft sets the value at key, which may have dots, in tree. path is the key of tree.
func graft(tree map[string]any, path, key string, v any) error {
	whole := path + key
	if strings.Count(whole, ".") >= maxArgDepth {
		return fmt.Errorf("%.60s: nested too deep", whole)
	}
	head, rest, dotted := strings.Cut(key, ".")
	m, isMap := v.(wire.Map)
	if dotted || isMap {
		inner, ok := tree[head].(map[string]any)
		if !ok {
			if _, there := tree[head]; there {
				return fmt.Errorf("%.60s: given twice, once as a whole", path+head)
			}
			inner = map[string]any{}
			tree[head] = inner
		}
		if dotted {
			return graft(inner, path+head+".", rest, v)
		}
		for _, p := range m {
			if err := graft(inner, whole+".", p.Key, p.Value); err != nil {
				return err
			}
		}
		return nil
	}
	if v == nil {
		return nil
	}
	if _, there := tree[key]; there {
		return fmt.Errorf("%.60s: given twice", whole)
	}
	x, err := plainValue(v)
	if err != nil {
		return fmt.Errorf("%.60s: %w", whole, err)
	}
	tree[key] = x
	return nil
}

// plainValue returns a message's single value as a configuration has it. A whole number is an integer in either format,
// because JSON does not distinguish 3 from 3.0.
func plainValue(v any) (any, error) {
	switch v := v.(type) {
	case bool, int64, uint64, string:
		return v, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), nil
		}
		return v, nil
	case wire.Array: // numpy's scalars
		if v.Len() != 1 {
			return nil, fmt.Errorf("got an array of %d numbers, want a single value", v.Len())
		}
		if n, ok := v.Int(0); ok {
			if v.DType == wire.Bool {
				return n != 0, nil
			}
			return n, nil
		}
		return plainValue(v.Float(0))
	case []any:
		return nil, errors.New("got a list, want a single value")
	}
	return nil, errors.New("got bytes, want a single value")
}

// ended reports whether err is that a request has ended.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// badKwargs returns err as the client's mistake, unless its request has ended.
func badKwargs(err error) error {
	var e *wire.Error
	if err == nil || errors.As(err, &e) || ended(err) {
		return err
	}
	if faults := fault.All(err); len(faults) == 1 {
		f := faults[0]
		return &wire.Error{Code: wire.BadKwargs, Msg: "argument " + f.Key, Got: f.Value, Want: f.Want}
	}
	return &wire.Error{Code: wire.BadKwargs, Msg: strings.ReplaceAll(err.Error(), "\n", "; ")}
}

// Kwarg is one argument of an environment.
type Kwarg struct {
	Name    string `json:"name"` // with dots where it is nested
	Type    string `json:"type"` // int, float, bool, string or duration (a string such as "1h30m")
	Default any    `json:"default"`
	Want    string `json:"want"` // bounds or values
	Doc     string `json:"doc"`

	workload bool // false = a setting of the environment
}

// kwargOf describes one argument.
func kwargOf(path string, v reflect.Value, words [2]string) Kwarg {
	k := Kwarg{Name: path, Want: words[0], Doc: words[1]}
	switch x := v.Interface().(type) {
	case time.Duration:
		k.Type, k.Default = "duration", x.String()
	case int:
		k.Type, k.Default = "int", int64(x)
	case uint64:
		k.Type, k.Default = "int", x
	case float64:
		k.Type, k.Default = "float", x
	case bool:
		k.Type, k.Default = "bool", x
	case string:
		k.Type, k.Default = "string", x
	case jobselect.Images:
		k.Type, k.Default = "bool", bool(x)
	case sim.Estimates:
		k.Type, k.Default = "string", x.String()
	case sched.Forecast:
		k.Type, k.Default = "string", string(x)
	case map[string]string:
		k.Type = "map" // empty by default
	default:
		panic(fmt.Sprintf("experiments: argument %s is a %T", path, x))
	}
	return k
}

// walkKeys calls fn for every single value of a configuration with its path.
func walkKeys(v reflect.Value, prefix string, fn func(path string, v reflect.Value)) {
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		f := v.Field(i)
		if !v.Type().Field(i).IsExported() {
			continue
		}
		switch {
		case name == "-":
		case options == "inline" && f.Kind() == reflect.Interface:
			if !f.IsNil() {
				walkKeys(f.Elem().Elem(), prefix, fn)
			}
		case options == "inline":
			walkKeys(f, prefix, fn)
		case f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[sim.Estimates]():
			walkKeys(f, prefix+name+".", fn)
		default:
			fn(prefix+name, f)
		}
	}
}
