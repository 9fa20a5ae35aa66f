package run

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/traces"
)

// specOf returns the specification of the environment of cfg.
func specOf(t *testing.T, cfg *config.Config) env.Spec {
	t.Helper()
	w, err := arena.NewScenario(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := w.NewEnv(traces.Training, 1)
	if err != nil {
		t.Fatal(err)
	}
	return e.Spec()
}

func TestMemoryBeyondAnyMachineIsRefused(t *testing.T) {
	base := config.For("JobSelect-v1")
	spec := specOf(t, &base)
	for _, c := range []struct{ sets, want string }{
		{"train.envs=65536", "train.envs, ppo.steps, ppo.minibatches, ppo.network: this training would need about 1"},
		{"ppo.steps=1048576", "(the rollout 1"},
		{"agent=ddqn ddqn.buffer=1000000000", "ddqn.buffer: this training would need about 9 TiB"},
		{"ppo.network.hidden=[65536,65536]", "ppo.network, ppo.shards: "},
		{"agent=ddqn ddqn.network.hidden=[65536,65536]", "ddqn.network, ddqn.shards: "},
		{"agent=ddqn ddqn.batch=1048576 ddqn.buffer=1048576 ddqn.network.hidden=[4096,4096]", "ddqn.batch"},
		{"agent=improper improper.steps=1048576", "improper.steps: this training would need about "},
		{"agent=ddqn train.envs=65536 ddqn.n_step=1000", "train.envs, ddqn.n_step: "},
	} {
		cfg := config.For("JobSelect-v1")
		for s := range strings.FieldsSeq(c.sets) {
			if err := configs.Set(&cfg, s); err != nil {
				t.Fatal(err)
			}
		}
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v, want a configuration that is valid by itself", c.sets, err)
		}
		err := config.CheckMemory(&cfg, spec)
		if _, ok := errors.AsType[*fault.Mistake](err); !ok || !strings.Contains(err.Error(), c.want) ||
			!strings.HasSuffix(err.Error(), "want at most 64 GiB") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want a *fault.Mistake with %q", c.sets, err, c.want)
		}
	}
}

func TestMemoryOfUsualSettingsIsGranted(t *testing.T) {
	for _, sets := range []string{
		"name=default", "train.envs=1024", "ppo.steps=8192", "ppo.network.hidden=[4096,4096]",
		"agent=ddqn ddqn.buffer=1000000", "agent=ddqn ddqn.batch=4096 ddqn.shards=16",
	} {
		cfg := config.For("JobSelect-v1")
		for s := range strings.FieldsSeq(sets) {
			if err := configs.Set(&cfg, s); err != nil {
				t.Fatal(err)
			}
		}
		if err := config.CheckMemory(&cfg, specOf(t, &cfg)); err != nil {
			t.Errorf("%s: %v", sets, err)
		}
	}
}

func TestEstimatesOfMemoryAreNearWhatIsAllocated(t *testing.T) {
	if raced.On {
		t.Skip("memory is what this test counts, and the race detector takes some of its own; make unit runs it")
	}
	for _, sets := range []string{
		"train.envs=64 ppo.steps=64", "train.envs=4 ppo.steps=64 ppo.network.hidden=[512,512]",
		"train.envs=256 ppo.steps=1 ppo.minibatches=4",
		"agent=ddqn ddqn.buffer=4000000 ddqn.batch=16 train.envs=1", "agent=ddqn ddqn.buffer=4096 ddqn.batch=4096",
		"ppo.network.kind=attention ppo.network.head=slots ppo.shards=1 train.envs=64 ppo.steps=64",
		"ppo.network.kind=attention ppo.network.attention.layers=6 ppo.shards=1 train.envs=16 ppo.steps=64",
		"agent=ddqn ddqn.network.kind=attention ddqn.network.head=slots ddqn.shards=1 ddqn.buffer=4096 ddqn.batch=256",
	} {
		cfg := config.For("JobSelect-v1")
		for s := range strings.FieldsSeq(sets) {
			if err := configs.Set(&cfg, s); err != nil {
				t.Fatal(err)
			}
		}
		w, err := arena.NewScenario(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		before := allocated()
		v, err := w.NewVec(&cfg, 1)
		if err != nil {
			t.Fatal(err)
		}
		spec := v.Spec()
		a, err := arena.NewAgent(&cfg, spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Train.CheckpointEvery = 1, 0, 0 // windows are drawn and batches filled
		tr, err := train.New(cfg.Train, v, a, cfg.Seed)
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Run(t.Context(), train.Hooks{}); err != nil {
			t.Fatal(err)
		}
		got, want := allocated()-before, 0.0
		for _, n := range config.Needs(&cfg, spec) {
			want += n.Bytes
			if n.What == "a full replay buffer" { // observations come as the buffer fills
				want -= float64(cfg.DDQN.Buffer) * float64(4*spec.ObsLen()+spec.MaskLen())
			}
		}
		if want < got/2 || want > 2*got+1e6 {
			t.Errorf("%s: estimated %.1f MB, allocated %.1f MB", sets, want/1e6, got/1e6)
		}
		runtime.KeepAlive(tr)
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// allocated returns the number of live bytes.
func allocated() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
