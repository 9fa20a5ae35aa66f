package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/env/jobselect"
	"clustergym/env/queuerank/rltune"
	"clustergym/internal/fault"
	"clustergym/lab/envs"
	"clustergym/simulator/sim"
)

// set changes keys of c.
func set(t *testing.T, c *Config, assignments ...string) {
	t.Helper()
	for _, a := range assignments {
		if err := c.Set(a); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDefaultsOfEveryEnvironmentAreValidAndReadAsTheyAreWritten(t *testing.T) {
	for _, id := range envs.IDs() {
		c := For(id)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if d := c.Descriptor(); d.ID != id || d.Simulated() != c.Simulated() {
			t.Errorf("%s: the descriptor is that of %s", id, d.ID)
		}
		text, err := configs.Encode(&c)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Decode("config.yaml", text)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", id, err, text)
		}
		if !reflect.DeepEqual(read, c) {
			t.Errorf("%s: read %+v, want %+v", id, read, c)
		}
		other := Default()
		if err := other.SetEnv(id); err != nil || !reflect.DeepEqual(other, c) {
			t.Errorf("%s: changed from the default, the configuration is %+v (%v), want %+v", id, other, err, c)
		}
	}
}

func TestRivalsOfEveryEnvironmentCanBeNamed(t *testing.T) {
	for _, id := range envs.IDs() {
		c := For(id)
		d := c.Descriptor()
		if len(d.Rivals) == 0 || !slices.Equal(c.Policies(), d.Rivals) {
			t.Errorf("%s: compared with %v, want %v", id, c.Policies(), d.Rivals)
		}
		for _, name := range d.Rivals {
			r, err := ParseRival(name, d, c.Env.Settings)
			if err != nil || r.Name != name {
				t.Errorf("%s: rival %q is %q (%v)", id, name, r.Name, err)
			}
			if kinds := []bool{r.Rule != nil, r.Planner != nil, r.Sched.Order != ""}; slices.Index(kinds, true) < 0 ||
				kinds[0] && kinds[1] {
				t.Errorf("%s: rival %q is neither a rule, a planner nor a heuristic", id, name)
			}
		}
		for _, r := range d.RuleNames() {
			name := r
			if d.Scheduling() {
				name += "@slots"
			}
			if own, _ := d.Rule(r); own.Stops {
				if _, err := ParseRival(name, d, c.Env.Settings); err == nil ||
					!strings.HasSuffix(err.Error(), "want preempt: true") {
					t.Errorf("%s: rule %q where no job can be stopped: %v", id, name, err)
				}
				continue
			}
			if got, err := ParseRival(name, d, c.Env.Settings); err != nil || got.Rule == nil || got.Rule.Name != r {
				t.Errorf("%s: rule %q: %+v (%v)", id, name, got, err)
			}
		}
		c.Eval.Policies = []string{"bogus@slots"}
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), `eval.policies[0]: got "bogus@slots", want `) ||
			len(fault.All(err)) != 1 {
			t.Errorf("%s: %v, want one fault of eval.policies[0]", id, err)
		}
	}
}

// Where jobs can be stopped, agents are compared with rules that do so, unless they rank by run times that are hidden.
func TestRivalsThatStopJobs(t *testing.T) {
	c := For(jobselect.V1)
	s := c.Env.Settings.(*jobselect.Config)
	s.Preempt, s.Running = true, 8
	d := c.Descriptor()
	if got := c.Policies(); !slices.Equal(got, d.StopRivals) {
		t.Errorf("compared with %v, want %v", got, d.StopRivals)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	s.Estimates = sim.MustEstimates("none")
	if got, want := strings.Join(c.Policies(), " "),
		"fifo+skip smallest+skip gittins-2d+skip las+skip las-2d-prompt+skip random@slots fifo@slots las@slots las-2d@slots"; got != want {
		t.Errorf("compared with %s, want %s", got, want)
	}
	s.Preempt = false
	c.Eval.Policies = []string{"las@slots"}
	if err := c.Validate(); err == nil ||
		!strings.Contains(err.Error(),
			"las@slots stops running jobs, which preempt: false does not allow; want preempt: true") {
		t.Errorf("%v", err)
	}
}

func TestEverySchedulingEnvironmentHasAPresetOfItsOwn(t *testing.T) {
	for _, id := range envs.IDs() {
		d := envs.Find(id)
		if !d.Scheduling() {
			continue
		}
		if !slices.Contains(configs.Runs(), d.Preset) {
			t.Errorf("%s: there is no preset %q", id, d.Preset)
			continue
		}
		c, err := Preset(d.Preset)
		if err != nil || c.Env.ID != id {
			t.Errorf("preset %s is of %s (%v), want %s", d.Preset, c.Env.ID, err, id)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("preset %s: %v", d.Preset, err)
		}
		if len(c.Policies()) < 2 {
			t.Errorf("preset %s compares with %v alone", d.Preset, c.Policies())
		}
	}
	if _, err := Preset("none"); err == nil || !strings.Contains(err.Error(), "preset none") {
		t.Errorf("an unknown preset: %v", err)
	}
}

// What env.args say is what the keys say that they stand for.
func TestArgumentsAreAnotherWayToWriteKeys(t *testing.T) {
	for _, c := range []struct {
		id         string
		args, keys []string
	}{
		{"JobSelect-v1", []string{"window=32", "cluster=2x4", "trace.synth.jobs=900"},
			[]string{"env.window=32", "cluster=2x4", "trace.synth.jobs=900"}},
		{"DelayOffer-v1", []string{"window=48", "lease=5m", "cluster=4x8", "trace.mix=dally", "estimates=noisy:0.3"},
			[]string{"env.window=48", "env.lease=5m", "cluster=4x8", "trace.mix=dally", "env.estimates=noisy:0.3"}},
		{"GPUPick-v1", []string{"idle=true", "trace.seed=7"}, []string{"env.idle=true", "trace.seed=7"}},
		{"PolicyMix-v1", []string{"hold=10m"}, []string{"env.hold=10m"}},
		{"QueueRank-v1", []string{"base=fifo", "cluster=pool:64"}, []string{"env.base=fifo", "cluster=pool:64"}},
		{"DAGPlace-v1", []string{"tasks=20", "trace.file=graphs"}, []string{"env.tasks=20", "trace.file=graphs"}},
		{"WorkerPlace-v1", []string{"jobs=6", "trace.file=jobs.csv", "trace.mix=dl2"},
			[]string{"env.jobs=6", "trace.file=jobs.csv", "trace.mix=dl2"}},
	} {
		byArgs, byKeys := For(c.id), For(c.id)
		byArgs.Env.Args = c.args
		set(t, &byKeys, c.keys...)
		if err := errors.Join(byArgs.Validate(), byKeys.Validate()); err != nil {
			t.Errorf("%s: %v", c.id, err)
			continue
		}
		a, err := byArgs.Fold()
		if err != nil {
			t.Fatal(err)
		}
		b, err := byKeys.Fold()
		if err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: by arguments %+v, by keys %+v (%v)", c.id, a, b, err)
		}
		if reflect.DeepEqual(a, For(c.id)) {
			t.Errorf("%s: the arguments change nothing", c.id)
		}
		if again := For(c.id); !reflect.DeepEqual(byArgs.Env.Settings, again.Env.Settings) {
			t.Errorf("%s: Fold changed the configuration that it was given", c.id)
		}
	}
}

// What is read or set is folded: env.args go before the document's other keys, and later changes before env.args.
func TestArgumentsAreFoldedWhereTheyAreRead(t *testing.T) {
	c, given, err := DecodeGiven("run.yaml",
		[]byte("env:\n  id: DelayOffer-v1\n  lease: 9m\n  args: [lease=5m, cluster=4x8]\n"))
	if err != nil || c.Env.Args != nil || c.Cluster != "4x8" ||
		!strings.Contains(encoded(t, c.Env.Settings), "lease: 5m0s") {
		t.Errorf("read %+v (%v)", c, err)
	}
	if !given["env.lease"] || !given["cluster"] || given["env.load"] {
		t.Errorf("given are %v", given)
	}
	if err := given.Set(&c, "env.args=[load=2, trace.seed=7]"); err != nil || c.Env.Args != nil || c.Trace.Seed != 7 ||
		!given["env.load"] || !given["trace.seed"] {
		t.Errorf("set %+v (%v), given are %v", c, err, given)
	}
	set(t, &c, "env.lease=7m")
	if text := encoded(t, c.Env.Settings); !strings.Contains(text, "lease: 7m0s") || !strings.Contains(text, "load: 2") {
		t.Errorf("the settings are\n%s", text)
	}
	before := encoded(t, c)
	if err := c.Set("env.args=[load=3, split=test]"); err == nil || encoded(t, c) != before {
		t.Errorf("arguments that make no sense: %v, and the configuration is\n%s", err, encoded(t, c))
	}
	_, err = Decode("run.yaml", []byte("env:\n  id: DelayOffer-v1\n  args: [split=test]\n"))
	if err == nil || !strings.HasPrefix(err.Error(), `run.yaml: env.args: "split=test": a run trains on split train`) {
		t.Errorf("%v", err)
	}
}

// encoded returns a configuration as YAML.
func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := configs.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestArgumentsThatMakeNoSenseAreRefused(t *testing.T) {
	const parts = "a run trains on split train, is validated on validation and judged on test; want no "
	for _, c := range []struct{ id, arg, want string }{
		{"DelayOffer-v1", "split=test", `env.args: "split=test": ` + parts + "split"},
		{"JobSelect-v1", "preset=quickstart", `env.args: "preset=quickstart": ` + parts + "preset"},
		{"QueueRank-v1", "windo=3", `env.args: "windo=3": windo: unknown key; did you mean window?`},
		{"CartPole-v1", "window=3", `env.args: CartPole-v1 has no arguments, got "window=3"`},
		{"DAGPlace-v1", "cluster=4x8",
			`cluster: got "4x8", want nothing: DAGPlace-v1 has no cluster; its settings say what runs where`},
	} {
		cfg := For(c.id)
		cfg.Env.Args = []string{c.arg}
		if err := cfg.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %s: %v, want %s", c.id, c.arg, err, c.want)
		}
	}
	cfg := For("DelayOffer-v1")
	cfg.Env.Args = []string{"split=test"}
	if _, err := cfg.Fold(); err == nil {
		t.Error("split is folded")
	} else if _, ok := errors.AsType[*fault.Mistake](err); !ok {
		t.Errorf("%T, want a *fault.Mistake", err)
	}
}

func TestKeysThatAnEnvironmentDoesNotTakeAreFaults(t *testing.T) {
	for _, c := range []struct{ id, set, want string }{
		{"DAGPlace-v1", "trace.skip=3", "trace.skip: got 3, want nothing: DAGPlace-v1 takes task graphs: "},
		{"DAGPlace-v1", "trace.mix=dally", `trace.mix: got "dally", want nothing: DAGPlace-v1 takes task graphs: `},
		{"DAGPlace-v1", "cluster=4x8",
			`cluster: got "4x8", want nothing: DAGPlace-v1 has no cluster; its settings say what runs where`},
		{"DAGPlace-v1", "eval.windows=3", "eval.windows: got 3, want nothing: DAGPlace-v1 has no windows; see eval.episodes"},
		{"DAGPlace-v1", "eval.whole=true", "eval.whole: got true, want false: DAGPlace-v1 has no workload"},
		{"DAGPlace-v1", "eval.policies=[fifo]",
			`eval.policies[0]: got "fifo", want a planner or RULE@slots: policy "fifo" is unknown; use one of heft, `},
		{"DAGPlace-v1", "eval.policies=[heft, heft]", `eval.policies[1]: got "heft", want each policy once`},
		{"WorkerPlace-v1", "trace.synth.rate=2",
			"trace.synth.rate: got 2, want nothing: WorkerPlace-v1 generates its own jobs, or takes a file of jobs"},
		{"GPUPick-v1", "eval.episodes=3",
			"eval.episodes: got 3, want nothing: GPUPick-v1 is judged on windows, see eval.windows"},
		{"GPUPick-v1", "cluster=", `cluster: got "", want `},
		{"GPUPick-v1", "eval.seeds=0", "eval.seeds: got 0, want 1 to 1000"},
		{"QueueRank-v1", "env.estimates=none",
			`env.estimates: got "none", want estimates, not none: trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA`},
		{"QueueRank-v1", "eval.choose=jct", `eval.choose: got "jct", want "", mean or return`},
		{"CartPole-v1", "eval.choose=mean", `eval.choose: got "mean", want "": CartPole-v1 counts returns`},
		{"DelayOffer-v1", "env.estimates=none", ""},
	} {
		cfg := For(c.id)
		set(t, &cfg, c.set)
		err := cfg.Validate()
		if c.want == "" {
			// The rivals of the default list that rank by run times cannot play without estimates.
			for _, f := range fault.All(err) {
				if !strings.HasPrefix(f.Key, "eval.policies[") {
					t.Errorf("%s: %s: %v", c.id, c.set, f)
				}
			}
			continue
		}
		if n := len(fault.All(err)); n != 1 || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %s: %d faults: %v; want one, %s…", c.id, c.set, n, err, c.want)
		}
	}
	cfg := For("GPUPick-v1")
	if err := cfg.Set("env.reward=wait"); err == nil ||
		!strings.HasPrefix(err.Error(), "env.reward: unknown key; known are ") {
		t.Errorf("a setting of another environment: %v", err)
	}
	if err := cfg.Set("env.id=GPUPick-v3"); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "did you mean GPUPick-v2?") {
		t.Errorf("an unknown environment: %v", err)
	}
}

// Older versions wrote the default list of JobSelect-v1 into the configuration of every environment.
func TestTheOldDefaultListMeansTheEnvironmentsRivals(t *testing.T) {
	c := For("QueueRank-v1")
	c.Eval.Policies = slices.Clone(Default().Eval.Policies)
	if got, want := c.Policies(), envs.Find("QueueRank-v1").Rivals; !slices.Equal(got, want) {
		t.Errorf("compared with %v, want %v", got, want)
	}
	c.Eval.Policies = []string{"sjf+skip"}
	if got := c.Policies(); !slices.Equal(got, c.Eval.Policies) {
		t.Errorf("compared with %v, want %v", got, c.Eval.Policies)
	}
}

// Edit gives a copy its own settings.
func TestSettingsAreCopiedBeforeTheyChange(t *testing.T) {
	a := For("QueueRank-v1")
	b := a
	set(t, &b, "env.window=7")
	if reflect.DeepEqual(a.Env.Settings, b.Env.Settings) {
		t.Error("Set changed the settings of a copy")
	}
	d := a
	if d.Edit() == a.Env.Settings || !reflect.DeepEqual(d.Env.Settings, a.Env.Settings) {
		t.Error("Edit did not copy the settings")
	}
}

// With run times hidden, the default list of rivals leaves out those that rank by them; a rival that is named is
// refused.
func TestHiddenRunTimesLeaveRivalsThatAskForNone(t *testing.T) {
	for _, d := range []string{"JobSelect-v1", "DelayOffer-v1", "GPUPick-v1"} {
		c := For(d)
		all := len(c.Policies())
		if err := c.Set("env.estimates=none"); err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s without estimates: %v", d, err)
		}
		for _, p := range c.Policies() {
			if strings.HasPrefix(p, "sjf") || strings.HasPrefix(p, "srtf") || strings.HasPrefix(p, "area") {
				t.Errorf("%s without estimates is compared with %s", d, p)
			}
		}
		if n := len(c.Policies()); n == 0 || d != "GPUPick-v1" && n >= all {
			t.Errorf("%s: %d of %d rivals are left", d, n, all)
		}
		c.Eval.Policies = []string{"sjf+skip"}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "estimates: none hides") {
			t.Errorf("%s: a rival that is named: %v", d, err)
		}
	}
}

// env.forecast is younger than configurations that do not name it: they have auto, and auto is not written.
func TestTheDefaultOfForecastIsNotWritten(t *testing.T) {
	for _, id := range envs.IDs() {
		d := envs.Find(id)
		if !d.Simulated() || d.Preset == "" || id == rltune.ID { // its rows have no forecasts
			continue
		}
		c := For(id)
		for _, value := range []string{"auto", "on", "off"} {
			if err := c.Set("env.forecast=" + value); err != nil {
				t.Fatal(err)
			}
			text, err := configs.Encode(&c)
			if err != nil {
				t.Fatal(err)
			}
			if written := strings.Contains(string(text), "forecast:"); written != (value != "auto") {
				t.Errorf("%s: forecast %s is written: %v", id, value, written)
			}
			read, err := Decode("config.yaml", text)
			if err != nil || !reflect.DeepEqual(read, c) {
				t.Errorf("%s: forecast %s is read as %+v (%v)", id, value, read.Env.Settings, err)
			}
			if text, err = configs.Encode(configs.Whole{Config: &c}); err != nil ||
				!strings.Contains(string(text), "forecast: "+value) {
				t.Errorf("%s: forecast %s is not shown: %v\n%s", id, value, err, text)
			}
		}
		if err := c.Set("env.forecast=true"); err == nil || !strings.Contains(err.Error(), "want auto, on or off") {
			t.Errorf("%s: forecast true: %v", id, err)
		}
	}
}

// The networks of the presets take observations with forecasts as they are, and larger ones than without.
func TestNetworksOfPresetsTakeForecasts(t *testing.T) {
	for _, id := range envs.IDs() {
		d := envs.Find(id)
		if !d.Simulated() || d.Preset == "" || id == rltune.ID { // its rows have no forecasts
			continue
		}
		for _, agent := range []string{"ppo", "ddqn"} {
			weights := map[string]float64{}
			for _, forecast := range []string{"off", "on"} {
				c, err := Preset(d.Preset)
				if err != nil {
					t.Fatal(err)
				}
				c.Agent = agent
				for _, set := range []string{"trace.synth.jobs=4000", "env.window=32", "env.forecast=" + forecast} {
					if err := c.Set(set); err != nil {
						t.Fatal(err)
					}
				}
				w, err := envs.LoadWorkload(t.Context(), d, c.Env.Settings, c.Cluster, c.Trace)
				if err != nil {
					t.Fatal(err)
				}
				e, err := d.Open(c.Env.Settings, w.Source, 0)
				if err != nil {
					t.Fatal(err)
				}
				needs := Needs(&c, e.Spec())
				if len(needs) == 0 {
					t.Fatalf("%s: the network of agent %s in preset %s does not fit its environment with forecast %s", id, agent,
						d.Preset, forecast)
				}
				i := slices.IndexFunc(needs, func(n Need) bool { return n.What == "parameters" })
				weights[forecast] = needs[i].Bytes
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if weights["on"] <= weights["off"] {
				t.Errorf("%s: the network of agent %s has %v bytes with forecasts and %v without", id, agent, weights["on"],
					weights["off"])
			}
		}
	}
}
