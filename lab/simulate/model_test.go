package simulate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/env/jobselect"
	"clustergym/lab/envs"
	"clustergym/nets/onnx"
)

// firstLegal writes a model that takes the first legal action, for observations of any width and so many actions.
func firstLegal(t *testing.T, width, actions int) string {
	t.Helper()
	in := func(name string, typ onnx.Type, n int) onnx.Value {
		return onnx.Value{Name: name, Type: typ, Known: true, Shape: []int{-1, n}}
	}
	m := &onnx.Model{IR: 8, Opset: 17, Graph: onnx.Graph{
		Name: "first", Inputs: []onnx.Value{in("obs", onnx.Float32, width), in("action_mask", onnx.Bool, actions)},
		Outputs: []onnx.Value{{Name: "action", Type: onnx.Int64}},
		Nodes: []onnx.Node{
			{Op: "Cast", Inputs: []string{"action_mask"}, Outputs: []string{"m"},
				Attributes: []onnx.Attribute{{Name: "to", Kind: onnx.KindInt, Int: int64(onnx.Int64)}}},
			{Op: "ArgMax", Inputs: []string{"m"}, Outputs: []string{"action"},
				Attributes: []onnx.Attribute{{Name: "axis", Kind: onnx.KindInt, Int: 1}, {Name: "keepdims", Kind: onnx.KindInt}}},
		},
	}}
	name := filepath.Join(t.TempDir(), "first.onnx")
	if err := os.WriteFile(name, m.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// With one visible job, the oldest, a model that starts whatever it can is first come, first served without skipping.
func TestAModelSchedulesAWholeTrace(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Trace.Synth.Jobs, cfg.Cluster = 150, "1x4"
	cfg.Policies = []string{"fifo+skip"}
	s := jobselect.DefaultConfig()
	s.Visible, s.Slots, s.MaxGPUs, s.Images = 150, "oldest", 2, false
	// The observation of the environment without images: its tables.
	width := 0
	for _, n := range []int{1, 1 << 12} {
		m, err := envs.ReadModel(firstLegal(t, n, 151), "mine")
		if err != nil {
			t.Fatal(err)
		}
		_, err = Run(t.Context(), cfg, Hooks{Models: []Played{{m, s}}})
		if err == nil {
			t.Fatal("a model of another width plays")
		}
		_, after, ok := strings.Cut(err.Error(), "an observation of JobSelect-v1 has ")
		if !ok {
			t.Fatal(err)
		}
		width = 0
		for _, c := range after {
			width = 10*width + int(c-'0')
		}
	}
	m, err := envs.ReadModel(firstLegal(t, width, 151), "mine")
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), cfg, Hooks{Models: []Played{{m, s}}})
	if err != nil {
		t.Fatal(err)
	}
	fifo, mine := report.Runs[0], report.Runs[1]
	if mine.Name() != "mine" || mine.Metrics.JCT != fifo.Metrics.JCT || mine.Events != fifo.Events ||
		mine.Trace.Refused != fifo.Trace.Refused {
		t.Errorf("%s: %+v\n%s: %+v", mine.Name(), mine.Metrics, fifo.Name(), fifo.Metrics)
	}
	if mine.Trace.Refused == 0 ||
		!strings.Contains(strings.Join(report.Notes, "\n"),
			"models take no jobs without a run time or with more than 2 GPUs (env.max_gpus)") {
		t.Errorf("%d jobs refused, notes %q", mine.Trace.Refused, report.Notes)
	}
	if n := mine.Metrics.Finished + mine.Trace.Refused; n != 150 {
		t.Errorf("%d jobs of 150", n)
	}
}

func TestWhatModelsDoNotGoWith(t *testing.T) {
	m, err := envs.ReadModel(firstLegal(t, 1, 1), "mine")
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(c *Config, h *Hooks){
		"does not go with events":               func(_ *Config, h *Hooks) { h.Events = &bytes.Buffer{} },
		"does not go with jobs-out":             func(_ *Config, h *Hooks) { h.Jobs = &bytes.Buffer{} },
		"policy mine is named twice":            func(_ *Config, h *Hooks) { h.Models = append(h.Models, h.Models[0]) },
		"does not go with horizon":              func(c *Config, _ *Hooks) { c.Horizon = 1e12 },
		"settings of the simulator other than":  func(c *Config, _ *Hooks) { c.Simulator.Restart = 1e9 },
		"needs the whole trace in memory; want": func(c *Config, _ *Hooks) { c.Trace.File, c.Stream = "x.csv", "on" },
	} {
		cfg := DefaultConfig()
		cfg.Trace.Synth.Jobs, cfg.Cluster = 20, "1x4"
		h := Hooks{Models: []Played{{m, jobselect.DefaultConfig()}}}
		change(&cfg, &h)
		if _, err := Run(t.Context(), cfg, h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
