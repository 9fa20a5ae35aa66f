package arena

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/agents/onnx"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/lab/config"
	format "clustergym/nets/onnx"
)

// exported returns the presets whose agents have networks: all but those of improper.
func exported(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range configs.Runs() {
		cfg, err := config.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Agent != "improper" {
			names = append(names, name)
		}
	}
	return names
}

// onnxCases is a folder to which TestExportsOfPresetsActLikeThem writes what other programs can check: make python
// does.
var onnxCases = os.Getenv("CLUSTERGYM_ONNX_CASES")

// presetPolicy returns a policy of a preset with random weights, and its environment.
func presetPolicy(t *testing.T, name string) (agents.Policy, env.Env) {
	t.Helper()
	cfg, err := config.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Trace.Synth.Jobs = min(cfg.Trace.Synth.Jobs, 3000) // the workload does not matter
	w, err := NewScenario(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := w.open(w.judged(), w.Source, 0)
	if err != nil {
		t.Fatal(err)
	}
	learner := Trainee(nil)
	if cfg.Meta() {
		l, err := NewLearner(&cfg, func() (env.Env, error) { return w.open(w.judged(), w.Source, 0) }, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() //nolint:errcheck // a test
		learner = l
	} else {
		cfg.Train.Envs = max(1, cfg.Train.Group)
		cfg.PPO.Replicas, cfg.PPO.Minibatches, cfg.PPO.Shards = 1, 1, 1
		a, err := NewAgent(&cfg, e.Spec(), 1)
		if err != nil {
			t.Fatal(err)
		}
		learner = a
	}
	r := rng.Stream(1, "test/"+name)
	for i := range learner.Params().Data {
		learner.Params().Data[i] += 0.1 * float32(r.NormFloat64())
	}
	weights, err := weightsOf(learner)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPolicy(&cfg, e.Spec(), bytes.NewReader(weights))
	if err != nil {
		t.Fatal(err)
	}
	return p, e
}

// visited returns n time steps of random play as a batch.
func visited(t *testing.T, e env.Env, n int) *env.Batch {
	t.Helper()
	s := e.Spec()
	b, row, act := env.NewBatch(s, n), env.NewBatch(s, 1), env.NewActions(s, 1)
	ts := env.TimeStep{Obs: row.Obs, Mask: row.Mask, Info: row.Info, Kind: env.Terminated}
	r := rng.Stream(2, "test/play")
	for i, episode := 0, 0; i < n; {
		var err error
		if ts.Kind.Last() {
			err = e.Reset(context.Background(), env.Episode{Seed: uint64(episode), Window: -1}, &ts)
			episode++
		} else {
			err = e.Step(context.Background(), env.Action{Disc: act.Disc, Cont: act.Cont}, &ts)
		}
		if err != nil {
			t.Fatal(err)
		}
		if ts.Kind.Last() {
			continue
		}
		copy(b.Obs[i*s.ObsLen():], ts.Obs)
		copy(b.Mask[i*s.MaskLen():], ts.Mask)
		b.Kind[i] = ts.Kind
		i++
		at := 0
		for f, size := range s.Action.Sizes {
			for k := r.IntN(size); ; k = r.IntN(size) {
				if ts.Mask[at+k] {
					act.Disc[f] = int32(k)
					break
				}
			}
			at += size
		}
		for k := range s.Action.Low {
			act.Cont[k] = float32(min(max(r.NormFloat64(), float64(s.Action.Low[k])), float64(s.Action.High[k])))
		}
	}
	return b
}

// An exported policy of every preset is played by the executor as it plays itself, on observations of its environment.
func TestExportsOfPresetsActLikeThem(t *testing.T) {
	for _, name := range exported(t) {
		t.Run(name, func(t *testing.T) {
			p, e := presetPolicy(t, name)
			defer e.Close() //nolint:errcheck // a test
			const n = 70    // more than the executor computes at a time
			b, s := visited(t, e, n), e.Spec()
			m, err := p.(interface {
				Export(rows int) (*format.Model, error)
			}).Export(0)
			if err != nil {
				t.Fatal(err)
			}
			model := m.Encode()
			read, err := format.Decode(model)
			if err != nil {
				t.Fatal(err)
			}
			for _, rule := range []agents.Rule{agents.AsGiven, agents.BySample, agents.ByArgMax, agents.ByShare} {
				sameByRule(t, rule, p.(agents.Chooser), read, s, b)
			}
			want := env.NewActions(s, n)
			if err := p.Act(context.Background(), b, want, nil); err != nil {
				t.Fatal(err)
			}
			if onnxCases != "" {
				scores, kind := scoresOf(t, p, s, b)
				keepCase(t, name, model, b, want, scores, kind)
			}
		})
	}
}

// sameByRule checks that a policy and its export take the same actions of b by a rule. By agents.AsGiven the export's
// own action is that of the policy's default. Numbers are drawn by a policy alone: a model gives their means.
func sameByRule(t *testing.T, rule agents.Rule, p agents.Chooser, m *format.Model, s env.Spec, b *env.Batch) {
	t.Helper()
	if rule == agents.BySample && len(s.Action.Low) > 0 {
		return
	}
	q, err := onnx.NewContext(context.Background(), m, s, rule)
	if err != nil {
		t.Fatal(err)
	}
	if p.By(rule); rule == agents.AsGiven {
		p.By("")
	}
	const seed = 46
	streams := func() (src []*rand.Rand) {
		for i := range b.N {
			src = append(src, rng.Stream(seed, "test/row"+strconv.Itoa(i)))
		}
		return src
	}
	want, got := env.NewActions(s, b.N), env.NewActions(s, b.N)
	if err := errors.Join(p.Act(context.Background(), b, want, streams()),
		q.Act(context.Background(), b, got, streams())); err != nil {
		t.Fatal(err)
	}
	for i := range want.Disc {
		if want.Disc[i] != got.Disc[i] {
			t.Fatalf("by %s, seed %d: index %d is %d, want %d", rule, seed, i, got.Disc[i], want.Disc[i])
		}
	}
	for i, x := range want.Cont {
		if d := math.Abs(float64(x) - float64(got.Cont[i])); d > 1e-6*max(1, math.Abs(float64(x))) {
			t.Fatalf("by %s: number %d is %v, want %v", rule, i, got.Cont[i], x)
		}
	}
}

// scoresOf returns what a policy over one factor computes for every action; nil for others.
func scoresOf(t *testing.T, p agents.Policy, s env.Spec, b *env.Batch) ([]float32, agents.ScoreKind) {
	t.Helper()
	if len(s.Action.Sizes) != 1 || len(s.Action.Low) > 0 {
		return nil, ""
	}
	scores := make([]float32, b.N*s.MaskLen())
	kind, err := p.(agents.Scorer).Scores(context.Background(), b, scores)
	if err != nil {
		t.Fatal(err)
	}
	return scores, kind
}

// The settings that a model brings along name no file of the machine that trained it.
func TestSettingsOfModelsNameNoFiles(t *testing.T) {
	cfg, err := config.Preset("quickstart-v1")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Trace.File, cfg.Trace.Profiles, cfg.Cluster = "/home/a/jobs.csv", "/home/a/speeds.csv", "/home/a/cluster.yaml"
	if err := cfg.Set("env.estimates=gbdt:/home/a/model.bin"); err != nil {
		t.Fatal(err)
	}
	text, err := runOf(&cfg)
	if err != nil || strings.Contains(text, "/home") || !strings.Contains(text, "estimates: gbdt\n") {
		t.Errorf("%v, %s", err, text)
	}
	if got := cfg.Estimates(); got.String() != "gbdt:/home/a/model.bin" {
		t.Errorf("the run's own estimates became %s", got)
	}
}

// keepCase writes a model beside observations, the actions that it must take, and the scores of a single factor's.
func keepCase(t *testing.T, name string, model []byte, b *env.Batch, act *env.Actions, scores []float32,
	kind agents.ScoreKind) {
	t.Helper()
	dir := filepath.Join(onnxCases, "preset-"+name)
	mask := make([]byte, len(b.Mask))
	for i, legal := range b.Mask {
		if legal {
			mask[i] = 1
		}
	}
	var action []byte
	for _, k := range act.Disc {
		action = binary.LittleEndian.AppendUint64(action, uint64(k))
	}
	raw := func(x []float32) (b []byte) {
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	}
	files := map[string][]byte{"model.onnx": model, "obs": raw(b.Obs), "mask": mask, "rows": fmt.Append(nil, b.N)}
	if len(action) > 0 {
		files["action"] = action
	} else {
		files["out.action"] = raw(act.Cont)
	}
	switch kind {
	case agents.Values:
		files["out.q"] = raw(scores)
	case agents.Probabilities:
		files["probabilities"] = raw(scores)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for k, x := range files {
		if err := os.WriteFile(filepath.Join(dir, k), x, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
