package envs

import (
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

	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/bridge/wire"
	"clustergym/env/cluster"
	"clustergym/env/jobselect"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/traces"
)

// JobSelectArgs are the arguments of JobSelect-v1: its own configuration, and what its episodes are drawn from.
type JobSelectArgs struct {
	jobselect.Config `yaml:",inline"`

	Cluster string               `yaml:"cluster"` // see ClusterForms
	Trace   workload.TraceConfig `yaml:"trace"`
	Split   string               `yaml:"split"`  // the part that episodes are of: a value of env.Episode.Split
	Preset  string               `yaml:"preset"` // an embedded run whose trace, cluster and environment take the place of the defaults; "" = none
}

// splitNames are the parts as environments call them, by traces.Part.
var SplitNames = [...]string{traces.Training: env.SplitTrain, traces.Validation: env.SplitValidation, traces.Test: env.SplitTest}

// DefaultJobSelectArgs are those of DefaultConfig: 20,000 generated jobs on 32 GPUs, the training part.
func DefaultJobSelectArgs() JobSelectArgs {
	return JobSelectArgs{Config: jobselect.DefaultConfig(), Cluster: workload.DefaultCluster, Trace: workload.DefaultTraceConfig(), Split: env.SplitTrain}
}

// Validate reports every fault. Whether files are there is not looked at.
func (a *JobSelectArgs) Validate() error {
	var l fault.List
	l.Join("", a.Config.Validate())
	l.Add(a.Cluster != "", "cluster", a.Cluster, workload.ClusterForms)
	l.Join("trace", a.Trace.Validate())
	l.Add(slices.Contains(SplitNames[:], a.Split), "split", a.Split, "one of "+strings.Join(SplitNames[:], ", "))
	l.Add(a.Preset == "" || slices.Contains(WorkloadPresets(), a.Preset), "preset", a.Preset, "one of "+strings.Join(WorkloadPresets(), ", ")+", or nothing")
	return l.Err()
}

// part is Split as the workload calls it.
func (a *JobSelectArgs) part() traces.Part { return traces.Part(slices.Index(SplitNames[:], a.Split)) }

// sha names everything that decides the episodes over w: the environment's configuration, the cluster, the part and
// the jobs, wherever these come from.
func (a *JobSelectArgs) Sha(w *World) (string, error) {
	spec := w.Cluster
	spec.Name = "" // it decides nothing
	text, err := configs.Encode(struct {
		Env     jobselect.Config `yaml:"env"`
		Cluster cluster.Spec     `yaml:"cluster"`
		Split   string           `yaml:"split"`
	}{a.Config, spec, a.Split})
	if err != nil {
		return "", err
	}
	return ScenarioSHA(jobselect.ID, string(text), w.Jobs[:]), nil
}

func ScenarioSHA(id, config string, jobs []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "clustergym scenario 1\n%s\n%d\n%s", id, len(config), config)
	h.Write(jobs)
	return hex.EncodeToString(h.Sum(nil))
}

// decodeArgs reads arguments as a client sends them: keys with dots and nested maps alike; nil leaves a default. What
// is wrong is a *wire.Error of code bad_kwargs.
func decodeArgs(kwargs wire.Map) (JobSelectArgs, error) {
	args := DefaultJobSelectArgs()
	if name, ok := kwargs.Get("preset").(string); ok && slices.Contains(WorkloadPresets(), name) {
		c, err := presetWorkload(name)
		if err != nil {
			return args, err
		}
		args.Config, args.Cluster, args.Trace = c.Env.Config, c.Cluster, c.Trace
	}
	if err := graftArgs(kwargs, &args); err != nil {
		return args, err
	}
	return args, nil
}

// presetConfig is what an embedded run says of its workload, cluster and environment.
type presetConfig struct {
	Trace   workload.TraceConfig `yaml:"trace"`
	Cluster string               `yaml:"cluster"`
	Env     struct {
		ID               string   `yaml:"id"`
		Args             []string `yaml:"args"`
		jobselect.Config `yaml:",inline"`
	} `yaml:"env"`
}

// Validate implements configs.Validator; the whole configuration is validated where it is run.
func (*presetConfig) Validate() error { return nil }

// presetWorkload reads the embedded run called name.
func presetWorkload(name string) (presetConfig, error) {
	c := presetConfig{Trace: workload.DefaultTraceConfig(), Cluster: workload.DefaultCluster}
	c.Env.ID, c.Env.Config = jobselect.ID, jobselect.DefaultConfig()
	err := configs.DecodeKeys(configs.Presets, name+".yaml", &c, "trace", "cluster", "env")
	return c, err
}

// WorkloadPresets are the embedded runs that have a workload and a cluster, sorted.
func WorkloadPresets() []string { return slices.Clone(workloadPresets()) }

var workloadPresets = sync.OnceValue(func() []string {
	return slices.DeleteFunc(configs.Runs(), func(name string) bool {
		c, err := presetWorkload(name)
		return err != nil || c.Env.ID != jobselect.ID
	})
})

// maxArgDepth bounds how deep arguments are nested; none is deeper than three.
const maxArgDepth = 8

// graft puts the value at key, which may have dots, into tree. path is where tree stands.
func graft(tree map[string]any, path, key string, v any) error {
	whole := path + key
	if strings.Count(whole, ".") >= maxArgDepth {
		return fmt.Errorf("%.60s: nested too deep", whole)
	}
	if head, rest, dotted := strings.Cut(key, "."); dotted {
		inner, ok := tree[head].(map[string]any)
		if !ok {
			if _, there := tree[head]; there {
				return fmt.Errorf("%.60s: given twice, once as a whole", path+head)
			}
			inner = map[string]any{}
			tree[head] = inner
		}
		return graft(inner, path+head+".", rest, v)
	}
	if m, ok := v.(wire.Map); ok {
		inner, ok := tree[key].(map[string]any)
		if !ok {
			if _, there := tree[key]; there {
				return fmt.Errorf("%.60s: given twice, once as a whole", whole)
			}
			inner = map[string]any{}
			tree[key] = inner
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

// plainValue is a single value of a message as a configuration has it. A whole number is one however it travelled:
// JSON does not tell 3 from 3.0.
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

// badKwargs is err as the client's mistake.
func badKwargs(err error) error {
	var e *wire.Error
	if err == nil || errors.As(err, &e) {
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

	workload bool // not of the environment's own configuration
}

// kwargs describes the arguments with a's values as defaults, in order of declaration.
func (a *JobSelectArgs) kwargs() []Kwarg {
	var all []Kwarg
	workload := false
	walkKeys(reflect.ValueOf(a).Elem(), "", func(path string, v reflect.Value) {
		workload = workload || path == "cluster"
		k := kwargOf(path, v, argWords)
		k.workload = workload
		all = append(all, k)
	})
	return all
}

// kwargOf describes one argument.
func kwargOf(path string, v reflect.Value, all map[string][2]string) Kwarg {
	words := all[path]
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
	default:
		panic(fmt.Sprintf("experiments: argument %s is a %T", path, x))
	}
	return k
}

// walkKeys calls fn for every single value of a configuration, by its path.
func walkKeys(v reflect.Value, prefix string, fn func(path string, v reflect.Value)) {
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		f := v.Field(i)
		switch {
		case options == "inline":
			walkKeys(f, prefix, fn)
		case f.Kind() == reflect.Struct:
			walkKeys(f, prefix+name+".", fn)
		default:
			fn(prefix+name, f)
		}
	}
}
