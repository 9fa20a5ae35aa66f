package envs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/env/envtest"
	"clustergym/env/jobselect"
	"clustergym/internal/fault"
	"clustergym/traces"
)

func registry(t *testing.T, change func(c *RegistryConfig)) *Registry {
	t.Helper()
	cfg := DefaultRegistryConfig()
	if change != nil {
		change(&cfg)
	}
	r, err := NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// smallKwargs returns arguments of a workload that loads quickly.
func smallKwargs(more ...wire.Pair) wire.Map {
	return append(wire.Map{
		{Key: "window", Value: int64(12)}, {Key: "warm", Value: int64(8)}, {Key: "visible", Value: int64(4)},
		{Key: "cluster", Value: "2x4"},
		{Key: "trace", Value: wire.Map{{Key: "synth", Value: wire.Map{{Key: "jobs", Value: int64(400)}}}}},
	}, more...)
}

func makeEnvs(t *testing.T, r *Registry, id string, kwargs wire.Map, n int) *Made {
	t.Helper()
	m, err := r.Make(t.Context(), id, kwargs, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, e := range m.Envs {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return m
}

func TestEveryRegisteredEnvironmentKeepsTheContract(t *testing.T) {
	r := registry(t, nil)
	for _, id := range IDs() {
		var kwargs wire.Map
		options := []envtest.Option{envtest.Episodes(2)}
		switch id {
		case jobselect.V1:
			kwargs, options = smallKwargs(), append(options, envtest.Cap(200), envtest.NoAllocs())
		case delayoffer.V1: // its snapshots are played again from the beginning
			kwargs = wire.Map{{Key: "window", Value: int64(32)}}
		}
		t.Run(id, func(t *testing.T) {
			envtest.Run(t, func() env.Env {
				m, err := r.Make(t.Context(), id, kwargs, 1)
				if err != nil {
					t.Fatal(err)
				}
				return m.Envs[0]
			}, options...)
		})
	}
}

func TestWhatIsDescribedIsWhatIsMade(t *testing.T) {
	r := registry(t, nil)
	for _, id := range IDs() {
		info, err := Describe(id, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := makeEnvs(t, r, id, nil, 1)
		if got, want := fmt.Sprintf("%+v", m.Envs[0].Spec()), fmt.Sprintf("%+v", info.Spec); got != want {
			t.Errorf("%s: made\n%s\ndescribed\n%s", id, got, want)
		}
		if info.Spec.ID != id || !strings.HasPrefix(info.Page, "# "+id+"\n") || len(m.SHA) != 64 || info.Kwargs == nil {
			t.Errorf("%s: id %s, sha %q, page %.20q, kwargs %v", id, info.Spec.ID, m.SHA, info.Page, info.Kwargs)
		}
	}
}

// Every argument is described, and setting it to its default changes nothing.
func TestEveryArgumentIsDescribed(t *testing.T) {
	names := map[string]bool{}
	for _, d := range descriptors {
		describedArguments(t, d, names)
	}
	for name := range keyWords()["all"] {
		if !names[name] {
			t.Errorf("there are words for %s, which is no argument", name)
		}
	}
}

func describedArguments(t *testing.T, d *Descriptor, names map[string]bool) {
	t.Helper()
	info, err := Describe(d.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, k := range info.Kwargs {
		names[k.Name], own[k.Name] = true, true
		if k.Want == "" || k.Doc == "" {
			t.Errorf("%s: %s has no words", d.ID, k.Name)
		}
		v := k.Default
		if u, ok := v.(uint64); ok {
			v = int64(u)
		}
		args, err := decodeArgs(d, wire.Map{{Key: k.Name, Value: v}})
		if err != nil {
			t.Errorf("%s: %s: %v: %v", d.ID, k.Name, k.Default, err)
		} else if !reflect.DeepEqual(args, d.Args()) {
			t.Errorf("%s: %s: its default %v changes the arguments", d.ID, k.Name, k.Default)
		}
		if !strings.Contains(info.Page, "| "+k.Name+" |") {
			t.Errorf("%s: the page says nothing of %s", d.ID, k.Name)
		}
	}
	for name := range keyWords()[d.ID] {
		if !own[name] {
			t.Errorf("%s: there are words for %s, which is no argument", d.ID, name)
		}
	}
	if _, err := json.Marshal(info.Kwargs); err != nil {
		t.Error(err)
	}
}

func TestArgumentsComeNestedOrWithDots(t *testing.T) {
	d := Find(jobselect.V1)
	want := d.Args()
	own := want.Settings.(*jobselect.Config)
	own.Visible, own.Load, own.Horizon, own.Contested, want.Trace.Seed, want.Trace.Synth.Jobs, want.Split = 6, 0.5,
		time.Hour, true, 7, 900, "test"
	one := wire.Array{DType: wire.I64, Shape: []int{}, Data: []byte{6, 0, 0, 0, 0, 0, 0, 0}}
	for name, kwargs := range map[string]wire.Map{
		"nested": {
			{Key: "visible", Value: int64(6)}, {Key: "load", Value: 0.5}, {Key: "horizon", Value: "1h"},
			{Key: "contested", Value: true},
			{Key: "trace", Value: wire.Map{{Key: "seed", Value: int64(7)},
				{Key: "synth", Value: wire.Map{{Key: "jobs", Value: int64(900)}}}}},
			{Key: "split", Value: "test"},
		},
		"dots, whole floats, numpy's scalars, nil": {
			{Key: "visible", Value: one}, {Key: "load", Value: 0.5}, {Key: "horizon", Value: "60m"},
			{Key: "contested", Value: true},
			{Key: "trace.seed", Value: 7.0}, {Key: "trace.synth.jobs", Value: uint64(900)}, {Key: "split", Value: "test"},
			{Key: "gamma", Value: nil},
		},
		"both": {
			{Key: "visible", Value: 6.0}, {Key: "load", Value: 0.5}, {Key: "horizon", Value: "3600s"},
			{Key: "contested", Value: true},
			{Key: "trace.synth", Value: wire.Map{{Key: "jobs", Value: int64(900)}}},
			{Key: "trace", Value: wire.Map{{Key: "seed", Value: int64(7)}}},
			{Key: "split", Value: "test"},
		},
	} {
		got, err := decodeArgs(d, kwargs)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

func TestPresetsStandInThePlaceOfDefaults(t *testing.T) {
	args, err := decodeArgs(Find(jobselect.ID),
		wire.Map{{Key: "window", Value: int64(64)}, {Key: "preset", Value: "quickstart"}})
	if err != nil {
		t.Fatal(err)
	}
	own := args.Settings.(*jobselect.Config)
	if own.Reward != "wait" || args.Trace.Synth.Jobs != 180000 || args.Trace.Seed != 2 || own.Window != 64 {
		t.Errorf("got %+v", args)
	}
}

func TestBadArgumentsAreToldByKeyValueAndWish(t *testing.T) {
	r := registry(t, func(c *RegistryConfig) { c.MaxJobs, c.MaxGPUs = 5000, 1000 })
	r.UseBudget(budget.New(16 << 20))
	for _, c := range []struct {
		id     string
		kwargs wire.Map
		n      int
		code   wire.Code
		want   []string
	}{
		{jobselect.V1, wire.Map{{Key: "visible", Value: int64(3)}}, 1, wire.BadKwargs,
			[]string{"visible", "got 3", "even number"}},
		{jobselect.V1, wire.Map{{Key: "visibel", Value: int64(4)}}, 1, wire.BadKwargs,
			[]string{"visibel: unknown key; did you mean visible?"}},
		{jobselect.V1, wire.Map{{Key: "visible", Value: "4"}}, 1, wire.BadKwargs,
			[]string{"visible", `got "4"`, "whole number"}},
		{jobselect.V1, wire.Map{{Key: "gamma", Value: 2.0}, {Key: "tau", Value: "0s"}}, 1, wire.BadKwargs,
			[]string{"gamma: got 2", "; tau: got 0s"}},
		{jobselect.V1, wire.Map{{Key: "horizon", Value: 3600.0}}, 1, wire.BadKwargs,
			[]string{"horizon", "got 3600", `"40s"`}},
		{jobselect.V1, wire.Map{{Key: "trace", Value: "x.csv"}}, 1, wire.BadKwargs,
			[]string{"trace", "x.csv", "keys and values"}},
		{jobselect.V1, wire.Map{{Key: "trace.synth.jobs", Value: []any{}}}, 1, wire.BadKwargs,
			[]string{"trace.synth.jobs", "a list"}},
		{jobselect.V1, wire.Map{{Key: "trace.seed", Value: int64(1)},
			{Key: "trace", Value: wire.Map{{Key: "seed", Value: int64(1)}}}}, 1, wire.BadKwargs,
			[]string{"trace.seed: given twice"}},
		{jobselect.V1, wire.Map{{Key: "trace.seed", Value: int64(1)}, {Key: "trace", Value: int64(1)}}, 1, wire.BadKwargs,
			[]string{"trace: given twice"}},
		{jobselect.V1, wire.Map{{Key: "load", Value: []byte("1")}}, 1, wire.BadKwargs, []string{"load", "bytes"}},
		{jobselect.V1, wire.Map{{Key: "load", Value: wire.Array{DType: wire.F32, Shape: []int{2}, Data: make([]byte, 8)}}}, 1,
			wire.BadKwargs, []string{"load", "array of 2"}},
		{jobselect.V1, wire.Map{{Key: strings.Repeat("a.", 50) + "a", Value: int64(1)}}, 1, wire.BadKwargs,
			[]string{"nested too deep"}},
		{jobselect.V1, wire.Map{{Key: "split", Value: "training"}}, 1, wire.BadKwargs,
			[]string{"split", `"training"`, "train, validation, test"}},
		{jobselect.V1, wire.Map{{Key: "preset", Value: "slowstart"}}, 1, wire.BadKwargs,
			[]string{"preset", "slowstart", "quickstart"}},
		{jobselect.V1, wire.Map{{Key: "cluster", Value: "pool:2000"}}, 1, wire.BadKwargs,
			[]string{"cluster", "pool:2000", "at most 1000"}},
		{jobselect.V1, wire.Map{{Key: "cluster", Value: "1000000x1000000"}}, 1, wire.BadKwargs,
			[]string{"cluster", "1000000x1000000"}},
		{jobselect.V1, wire.Map{{Key: "cluster", Value: "/etc/passwd"}}, 1, wire.BadKwargs,
			[]string{"cluster", "/etc/passwd", "topdrl-2x4x4"}},
		{jobselect.V1, wire.Map{{Key: "cluster", Value: "registry_test.go"}}, 1, wire.BadKwargs,
			[]string{"cluster", "topdrl-2x4x4"}},
		{jobselect.V1, wire.Map{{Key: "cluster", Value: "../clusters/topdrl-2x4x4"}}, 1, wire.BadKwargs,
			[]string{"cluster", "topdrl-2x4x4"}},
		{jobselect.V1, wire.Map{{Key: "cluster", Value: ""}}, 1, wire.BadKwargs, []string{"cluster"}},
		{jobselect.V1, wire.Map{{Key: "trace.synth.jobs", Value: int64(6000)}}, 1, wire.BadKwargs,
			[]string{"trace.synth.jobs", "6000", "at most 5000"}},
		{jobselect.V1, wire.Map{{Key: "trace.jobs", Value: int64(6000)}}, 1, wire.BadKwargs,
			[]string{"trace.jobs", "6000", "at most 5000"}},
		{jobselect.V1, wire.Map{{Key: "trace.synth.jobs", Value: int64(100)}}, 1, wire.BadKwargs, []string{"too few jobs"}},
		{jobselect.V1, wire.Map{{Key: "trace.file", Value: "x.csv"}, {Key: "trace.synth.jobs", Value: int64(5000)}}, 1,
			wire.BadKwargs, []string{"trace.file", "x.csv", "--trace-root"}},
		{jobselect.V1, wire.Map{{Key: "trace.profiles", Value: "x.csv"}, {Key: "trace.synth.jobs", Value: int64(5000)}}, 1,
			wire.BadKwargs, []string{"trace.profiles", "--trace-root"}},
		{jobselect.V1, wire.Map{{Key: "trace.file", Value: "get:no-such-trace"}}, 1, wire.BadKwargs,
			[]string{"trace.file", "no-such-trace"}},
		{jobselect.V1, smallKwargs(), 1000, wire.Capacity, []string{"1000", "MiB"}},
		{"CartPole-v7", nil, 1, wire.UnknownEnv, []string{"CartPole-v7"}},
		{"JobSelect-v3", nil, 1, wire.UnknownEnv, []string{"did you mean JobSelect-v2?"}},
		{"InvalidAction-v1", wire.Map{{Key: "n", Value: int64(1)}}, 1, wire.BadKwargs,
			[]string{"InvalidAction-v1 has no arguments", `"n"`}},
		{"InvalidAction-v1", nil, 0, wire.BadRequest, []string{"1 or more"}},
	} {
		m, err := r.Make(t.Context(), c.id, c.kwargs, c.n)
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != c.code || m != nil {
			t.Errorf("%s %v: %v, want code %s", c.id, c.kwargs, err, c.code)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(e.Error(), want) {
				t.Errorf("%s %v: %q, want %q in it", c.id, c.kwargs, e.Error(), want)
			}
		}
		if strings.Contains(e.Error(), "\n") {
			t.Errorf("%s %v: %q, want one line", c.id, c.kwargs, e.Error())
		}
	}
}

// Files are read only below the trace root, even through links, and errors do not reveal its path.
func TestStrangersReadFilesBelowTheTraceRootOnly(t *testing.T) {
	t.Setenv("CLUSTERGYM_CACHE", t.TempDir())
	dir := t.TempDir()
	root := filepath.Join(dir, "open")
	if err := os.MkdirAll(filepath.Join(root, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	var csv strings.Builder
	csv.WriteString("submit_time,duration,num_gpu\n")
	for i := range 400 {
		fmt.Fprintf(&csv, "%d,%d,%d\n", 60*i, 100+i, 1+i%4)
	}
	for path, text := range map[string]string{
		filepath.Join(root, "in",
			"jobs.csv"): csv.String(), filepath.Join(root, "broken.csv"): "submit_time,duration,num_gpu\n1,x,1\n",
		filepath.Join(dir, "secret.csv"): csv.String(),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out.csv": filepath.Join(dir, "secret.csv"), "up": dir,
		"in.csv": filepath.Join("in", "jobs.csv")} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skip(err)
		}
	}
	r := registry(t, func(c *RegistryConfig) { c.TraceRoot, c.MaxJobs = root, 450 })
	kwargs := func(file string) wire.Map {
		k := smallKwargs()
		k[len(k)-1] = wire.Pair{Key: "trace.file", Value: file}
		return k
	}
	var shas []string
	for _, file := range []string{"in/jobs.csv", "in.csv", "in/../in/jobs.csv", "./in/jobs.csv"} {
		m := makeEnvs(t, r, jobselect.V1, kwargs(file), 1)
		shas = append(shas, m.SHA)
		if strings.Contains(fmt.Sprint(m.Meta), dir) {
			t.Errorf("%v tells where files lie", m.Meta)
		}
	}
	if len(slices.Compact(shas)) != 1 {
		t.Error("one workload by several names has several hashes")
	}
	for file, want := range map[string]string{
		"../secret.csv": "relative to it", filepath.Join(dir,
			"secret.csv"): "relative to it", filepath.Join(root, "in", "jobs.csv"): "relative to it",
		"out.csv": "relative to it", "up/secret.csv": "relative to it", "in/nowhere.csv": "exists below",
		"in": "ordinary file", "in/../../secret.csv": "relative to it",
		"broken.csv": "broken.csv", "get:philly-jobs": "gymctl trace get philly-jobs",
	} {
		_, err := r.Make(t.Context(), jobselect.V1, kwargs(file), 1)
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != wire.BadKwargs || !strings.Contains(e.Error(), want) {
			t.Errorf("%s: %v, want %q in it", file, err, want)
		} else if !filepath.IsAbs(file) && strings.Contains(e.Error(), dir) ||
			strings.Contains(e.Error(), os.Getenv("CLUSTERGYM_CACHE")) {
			t.Errorf("%s: %v tells where files lie", file, err)
		}
	}
	// A file that is written anew is read anew.
	path := filepath.Join(root, "in", "jobs.csv")
	more := csv.String() + "99999,5,1\n"
	if err := os.WriteFile(path, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	if makeEnvs(t, r, jobselect.V1, kwargs("in/jobs.csv"), 1).SHA == shas[0] {
		t.Error("the file has changed, the scenario has not")
	}
	if err := os.WriteFile(path, []byte(csv.String()+strings.Repeat("99999,5,1\n", 51)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Make(t.Context(), jobselect.V1, kwargs("in/jobs.csv"), 1); err == nil ||
		!strings.Contains(err.Error(), "1 to 450") {
		t.Errorf("a file of 451 jobs: %v", err)
	}
	for _, bad := range []string{filepath.Join(dir, "nowhere"), path} {
		if _, err := NewRegistry(RegistryConfig{TraceRoot: bad, MaxJobs: 1, MaxGPUs: 1}); err == nil ||
			!strings.Contains(err.Error(), bad) {
			t.Errorf("root %s: %v", bad, err)
		}
	}
}

// The hash depends on exactly the arguments that decide episodes.
func TestTheScenarioHashIsOfWhatDecidesEpisodes(t *testing.T) {
	r := registry(t, nil)
	base := makeEnvs(t, r, jobselect.V1, smallKwargs(), 1).SHA
	if other := makeEnvs(t, registry(t, nil), jobselect.V1, smallKwargs(), 3).SHA; other != base {
		t.Error("another registry, another hash")
	}
	seen := map[string]string{base: "the base"}
	for _, p := range []wire.Pair{
		{Key: "reward", Value: "wait"}, {Key: "split", Value: "test"}, {Key: "trace.seed", Value: int64(2)},
		{Key: "gamma", Value: 0.5},
		{Key: "trace.synth.work", Value: 2.0}, {Key: "max_gpus", Value: int64(4)}, {Key: "trace.mix", Value: "topdrl-cnn"},
	} {
		sha := makeEnvs(t, r, jobselect.V1, smallKwargs(p), 1).SHA
		if twin, twice := seen[sha]; twice {
			t.Errorf("%s has the hash of %s", p.Key, twin)
		}
		seen[sha] = p.Key
	}
	k := smallKwargs()
	k[3].Value = "1x8"
	if _, twice := seen[makeEnvs(t, r, jobselect.V1, k, 1).SHA]; twice {
		t.Error("another cluster, the same hash")
	}
	// A preset that stands for the same configuration is the same scenario.
	args, err := decodeArgs(Find(jobselect.ID), wire.Map{{Key: "preset", Value: "quickstart"}})
	if err != nil {
		t.Fatal(err)
	}
	byHand := *args
	byHand.Preset = ""
	w := &Workload{Source: &Source{}}
	a, err := args.SHA(w)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := byHand.SHA(w); err != nil || a != b {
		t.Errorf("the preset's name is part of the hash (%v)", err)
	}
}

// Every field of a job is part of the workload's hash. A new field must be added to it.
func TestEveryFieldOfAJobIsHashed(t *testing.T) {
	shaped := true
	sum := func(j traces.Job, named bool) string {
		var b bytes.Buffer
		h := &buffered{&b}
		hashJobs(h, []traces.Job{j}, named, shaped)
		return b.String()
	}
	seen := map[string]string{sum(traces.Job{}, true): "nothing"}
	for i := range reflect.TypeFor[traces.Job]().NumField() {
		var j traces.Job
		f := reflect.ValueOf(&j).Elem().Field(i)
		name := reflect.TypeFor[traces.Job]().Field(i).Name
		switch {
		case name == "GPUTypes":
			j.GPUTypes = []string{"V100"}
		case name == "Stops":
			j.Stops = []time.Duration{time.Minute}
		case name == "Profile":
			j.Profile = &traces.Profile{Name: "resnet"}
		case name == "Graph":
			j.Graph = &traces.Graph{Tasks: []traces.Task{{Name: "a"}}}
		case f.CanInt():
			f.SetInt(3)
		case f.CanUint():
			f.SetUint(3)
		case f.CanFloat():
			f.SetFloat(3)
		case f.Kind() == reflect.String:
			f.SetString("x")
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		default:
			t.Fatalf("field %s is a %v, which this test does not know", name, f.Type())
		}
		s := sum(j, true)
		// No episode depends on what happened; that of nodes is not part of any name.
		if slices.Contains([]string{"Started", "Waited", "Eligible", "Hosts", "Open", "Stops"}, name) {
			if s != sum(traces.Job{}, true) {
				t.Errorf("%s is part of the hash", name)
			}
			continue
		}
		if name == "Name" || name == "Group" || name == "Assumed" {
			if sum(j, false) != sum(traces.Job{}, false) {
				t.Errorf("%s is part of the hash without names", name)
			}
		}
		if twin, twice := seen[s]; twice {
			t.Errorf("%s counts as %s does", name, twin)
		}
		seen[s] = name
	}
	if shaped = false; sum(traces.Job{Nodes: 2}, true) != sum(traces.Job{}, true) {
		t.Error("Nodes is part of the hash where jobs are read to the letter")
	}
	speeds := traces.Job{Profile: &traces.Profile{Speeds: map[string]float64{"a": 1, "b": 2}}}
	if sum(speeds, true) == sum(traces.Job{Profile: &traces.Profile{Speeds: map[string]float64{"a": 1, "b": 3}}}, true) {
		t.Error("a profile's speeds do not count")
	}
}

// buffered is a hash that stores its input.
type buffered struct{ *bytes.Buffer }

func (b *buffered) Sum(p []byte) []byte { return append(p, b.Bytes()...) }
func (b *buffered) Size() int           { return b.Len() }
func (b *buffered) BlockSize() int      { return 1 }

func TestEnvironmentsOfOneScenarioShareItsWorkload(t *testing.T) {
	r := registry(t, nil)
	args, err := decodeArgs(Find(jobselect.V1), smallKwargs())
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.workload(t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	own := args.Settings.(*jobselect.Config)
	own.Reward, own.Visible, args.Split = "wait", 8, "test"
	if b, err := r.workload(t.Context(), args); err != nil || a != b {
		t.Errorf("what does not concern the workload makes another (%v)", err)
	}
	own.Window = 13
	if b, err := r.workload(t.Context(), args); err != nil || a == b {
		t.Errorf("other windows, the same workload (%v)", err)
	}
}

// workload returns a workload and ends its use.
func (r *Registry) workload(ctx context.Context, args *Args) (*Workload, error) {
	w, leave, err := r.borrow(ctx, args)
	if err == nil {
		leave()
	}
	return w, err
}

// getWorkload returns a workload of c and ends its use.
func getWorkload(ctx context.Context, c *workloadCache, key string,
	load func(context.Context) (*Workload, error)) (*Workload,
	error) {
	w, leave, err := c.use(ctx, key, func(ctx context.Context, _ *budget.Account) (*Workload, error) { return load(ctx) })
	if err == nil {
		leave()
	}
	return w, err
}

func TestWorkloadsAreMadeOnceAndDroppedByLastUse(t *testing.T) {
	c := newWorkloadCache(250)
	var made atomic.Int32
	get := func(key string) *Workload {
		w, err := getWorkload(context.Background(), c, key, func(context.Context) (*Workload, error) {
			made.Add(1)
			time.Sleep(5 * time.Millisecond)
			return &Workload{bytes: 100}, nil
		})
		if err != nil {
			t.Error(err)
		}
		return w
	}
	var wg sync.WaitGroup
	workloads := make([]*Workload, 16)
	for i := range workloads {
		wg.Go(func() { workloads[i] = get("a") })
	}
	wg.Wait()
	if made.Load() != 1 || len(slices.Compact(workloads)) != 1 {
		t.Fatalf("16 at once made %d workloads", made.Load())
	}
	b := get("b")
	if get("a") != workloads[0] {
		t.Error("a is gone, though there is room")
	}
	get("c") // now b is the one not used for longest
	if get("a") != workloads[0] || get("b") == b || made.Load() != 4 {
		t.Errorf("%d made, want a kept and b made anew", made.Load())
	}
	// One that is larger than all the room is kept until the next one comes.
	huge := newWorkloadCache(0)
	for range 2 {
		if _, err := getWorkload(context.Background(), huge, "x",
			func(context.Context) (*Workload, error) { return &Workload{bytes: 1}, nil }); err != nil {
			t.Error(err)
		}
	}
	if len(huge.entries) != 1 {
		t.Errorf("%d entries", len(huge.entries))
	}
}

func TestAWorkloadThatFailsIsTriedAgain(t *testing.T) {
	c := newWorkloadCache(1000)
	boom := errors.New("boom")
	for range 2 {
		if _, err := getWorkload(context.Background(), c, "a",
			func(context.Context) (*Workload, error) { return nil, boom }); !errors.Is(err, boom) {
			t.Errorf("got %v", err)
		}
	}
	// One that is called off does not take those with it that wait for the same.
	ctx, cancel := context.WithCancel(context.Background())
	begun := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := getWorkload(ctx, c, "a", func(ctx context.Context) (*Workload, error) {
			close(begun)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the first: %v", err)
		}
	})
	<-begun
	wg.Go(func() {
		w, err := getWorkload(context.Background(), c, "a",
			func(context.Context) (*Workload, error) { return &Workload{bytes: 7}, nil })
		if err != nil || w.bytes != 7 {
			t.Errorf("the second: %v, %v", w, err)
		}
	})
	cancel()
	wg.Wait()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	r := registry(t, nil)
	if _, err := r.Make(gone, jobselect.V1, smallKwargs(), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled Make: %v", err)
	}
	if err := (&RegistryConfig{}).Validate(); len(fault.All(err)) != 2 {
		t.Errorf("the zero configuration: %v", err)
	}
}
