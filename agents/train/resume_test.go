package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/agents/ddqn"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/vec"
)

// learners are tiny agents of both kinds.
var learners = map[string]func(spec env.Spec, rows int, seed uint64) (agents.Agent, error){
	"ppo": func(spec env.Spec, rows int, seed uint64) (agents.Agent, error) {
		c := ppo.DefaultConfig()
		c.Steps, c.Epochs, c.Minibatches, c.RewardScale = 16, 2, 3, true
		c.Network.Hidden = []int{8}
		return ppo.New(c, spec, rows, 1, seed)
	},
	"ddqn": func(spec env.Spec, rows int, seed uint64) (agents.Agent, error) {
		c := ddqn.DefaultConfig()
		c.Buffer, c.LearningStarts, c.Batch, c.TrainEvery, c.TargetEvery, c.RewardScale = 300, 100, 16, 10, 60, true
		c.Network.Hidden = []int{8}
		return ddqn.New(c, spec, rows, 1, seed)
	},
}

func learning(t *testing.T, kind string, seed uint64, cfg Config) (*Trainer, []agents.Part) {
	t.Helper()
	var envs []env.Env
	for range cfg.Envs {
		e, err := control.New("InvalidAction-v1")
		if err != nil {
			t.Fatal(err)
		}
		envs = append(envs, e)
	}
	v, err := vec.New(vec.Config{Autoreset: vec.SameStep}, envs...)
	if err != nil {
		t.Fatal(err)
	}
	a, err := learners[kind](v.Spec(), cfg.Envs, seed)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New(cfg, v, a, seed)
	if err != nil {
		t.Fatal(err)
	}
	return tr, append(a.Parts(), tr.Parts()...)
}

// A run that is cancelled, saved and loaded into a new process's objects ends with the bytes and the records of one
// that was never interrupted, for any place of the cut: within a rollout, within an episode, before the first step.
func TestResumedEqualsStraightThrough(t *testing.T) {
	cfg := Config{Steps: 1500, Envs: 5, LogEvery: 250, CheckpointEvery: 500, Keep: 1}
	for kind := range learners {
		straight, parts := learning(t, kind, 7, cfg)
		var want []string
		log := func(to *[]string) Hooks {
			return Hooks{Log: func(r Record) error { *to = append(*to, fmt.Sprintf("%+v", r)); return nil }}
		}
		if err := straight.Run(t.Context(), log(&want)); err != nil {
			t.Fatal(err)
		}
		wantBytes := bytesOf(t, parts)
		if straight.updates == 0 || straight.episodes == 0 || len(want) != 6 {
			t.Fatalf("%s: %d updates, %d episodes, %d records: nothing is tested", kind, straight.updates, straight.episodes,
				len(want))
		}
		for _, cut := range []int64{0, 235, 1000} {
			var got []string
			first, parts := learning(t, kind, 7, cfg)
			ctx, cancel := context.WithCancel(t.Context())
			h := log(&got)
			h.Tick = func(p Progress) error {
				if p.Step == cut {
					cancel()
				}
				return nil
			}
			if cut == 0 {
				cancel()
			}
			if err := first.Run(ctx, h); !errors.Is(err, context.Canceled) || first.Step() != cut {
				t.Fatalf("%s: %v at step %d, want to stop at %d", kind, err, first.Step(), cut)
			}
			dir := filepath.Join(t.TempDir(), "cut")
			if err := checkpoint.Save(dir, checkpoint.Meta{Step: cut}, parts...); err != nil {
				t.Fatal(err)
			}
			second, parts := learning(t, kind, 8, cfg) // another seed: everything must come from the checkpoint
			before := bytesOf(t, first.Parts())
			if _, err := checkpoint.Load(dir, parts...); err != nil {
				t.Fatal(err)
			}
			for name, b := range bytesOf(t, second.Parts()) {
				if !bytes.Equal(b, before[name]) {
					t.Errorf("%s, cut at %d: %s is not what was saved", kind, cut, name)
				}
			}
			if err := second.Run(t.Context(), log(&got)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, cut at %d: records\n%s, want\n%s", kind, cut, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for name, b := range bytesOf(t, parts) {
				if !bytes.Equal(b, wantBytes[name]) {
					t.Errorf("%s, cut at %d: %s differs", kind, cut, name)
				}
			}
			cancel()
		}
	}
}

// State that cannot be a trainer's is refused by name and changes nothing.
func TestStatesThatCannotBeAreRefused(t *testing.T) {
	cfg := Config{Steps: 600, Envs: 5, Keep: 1}
	tr, _ := learning(t, "ppo", 7, cfg)
	if err := tr.Run(t.Context(), Hooks{}); err != nil {
		t.Fatal(err)
	}
	tr.learned(agents.Stats{{Name: "x", Value: math.NaN()}})
	whole := bytesOf(t, tr.Parts())

	other, _ := learning(t, "ppo", 8, cfg)
	fresh := bytesOf(t, other.Parts()[:1]) // its environments have no episode yet
	for name, c := range map[string]struct {
		change func(m map[string]any)
		want   string
	}{
		"a stream too few":  {func(m map[string]any) { m["streams"] = m["streams"].([]any)[1:] }, "5 environments"},
		"a broken stream":   {func(m map[string]any) { m["streams"].([]any)[3] = "AAAA" }, "stream 3"},
		"a length too many": {func(m map[string]any) { m["length"] = append(m["length"].([]any), 1) }, "6 lengths"},
		"a return without": {func(m map[string]any) { m["last_return_bits"] = m["last_return_bits"].([]any)[1:] },
			"equally many"},
		"too many episodes": {func(m map[string]any) { tooMany(m) }, "100 at most"},
		"an info too many": {func(m map[string]any) { m["last_info_bits"].([]any)[0] = []any{1, 2, 3, 4} },
			"infos of an episode"},
		"a mean over none":    {func(m map[string]any) { m["learn"].([]any)[0].(map[string]any)["n"] = 0 }, "0 updates"},
		"a negative step":     {func(m map[string]any) { m["step"] = -1 }, "-1 steps"},
		"a key of the future": {func(m map[string]any) { m["new"] = 1 }, "new"},
		"text for a number":   {func(m map[string]any) { m["step"] = "1" }, "step"},
	} {
		var m map[string]any
		d := json.NewDecoder(bytes.NewReader(whole["trainer.json"]))
		d.UseNumber()
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		c.change(m)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Parts()[0].ReadFrom(bytes.NewReader(b)); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "trainer.json: ") {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
		if got := bytesOf(t, other.Parts()[:1]); !maps.EqualFunc(got, fresh, bytes.Equal) {
			t.Errorf("%s: the refused state changed something", name)
		}
	}
	for name, b := range map[string][]byte{"nothing": nil, "half": whole["envs.bin"][:len(whole["envs.bin"])/2]} {
		if _, err := other.Parts()[1].ReadFrom(bytes.NewReader(b)); !errors.Is(err, env.ErrSnapshot) || other.begun {
			t.Errorf("%s for envs.bin: %v, want env.ErrSnapshot", name, err)
		}
	}
	for i, p := range other.Parts() {
		if _, err := p.ReadFrom(bytes.NewReader(whole[p.Name()])); err != nil {
			t.Fatalf("part %d: %v", i, err)
		}
	}
	if got := bytesOf(t, other.Parts()); !maps.EqualFunc(got, whole, bytes.Equal) {
		t.Error("what was read is not what is written")
	}
}

func tooMany(m map[string]any) {
	for _, key := range []string{"last_return_bits", "last_length_bits", "last_info_bits"} {
		list := m[key].([]any)
		for len(list) <= recent {
			list = append(list, list[0])
		}
		m[key] = list
	}
}
