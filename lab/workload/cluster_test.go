package workload

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
)

func TestPresetsAreTheClustersOfTheirSources(t *testing.T) {
	type size struct{ racks, nodes, gpus, largest, vcs int }
	want := map[string]size{
		"topdrl-2x4x4":      {2, 8, 32, 4, 0},
		"topdrl-4x8x4":      {4, 32, 128, 4, 0},
		"lwf-16x4":          {1, 16, 64, 4, 0},
		"philly-192":        {1, 36, 192, 8, 0},
		"philly-vcs":        {1, 304, 2432, 8, 9},
		"openb-1523":        {1, 1523, 6212, 8, 0},
		"pai-1897":          {1, 1897, 6742, 8, 0},
		"pai-pools":         {5, 49, 254, 8, 0},
		"dally-slow":        {4, 16, 128, 8, 0},
		"rltune-helios":     {1, 17, 136, 8, 5},
		"helios-venus":      {1, 135, 1080, 8, 15},
		"helios-earth":      {1, 143, 1144, 8, 0},
		"helios-saturn":     {1, 262, 2096, 8, 0},
		"helios-uranus":     {1, 264, 2112, 8, 0},
		"acme-kalos":        {1, 302, 2416, 8, 0},
		"acme-seren":        {1, 286, 2288, 8, 0},
		"alibaba-spot-2026": {1, 4278, 10412, 8, 0},
		"lingjun-847":       {48, 847, 6776, 8, 0},
	}
	for _, name := range ClusterPresets() {
		spec, err := ClusterSpec(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c, err := cluster.New(spec)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if spec.Name != name {
			t.Errorf("%s calls itself %q", name, spec.Name)
		}
		w, ok := want[name]
		if got := (size{c.Racks(), c.Nodes(), c.GPUs(), c.MaxNode(), len(c.VCs())}); !ok || got != w {
			t.Errorf("%s: got %+v, want %+v", name, got, w)
		}
		owned := 0
		for _, v := range spec.VCs {
			owned += v.Nodes
		}
		if len(spec.VCs) > 0 && owned != c.Nodes() {
			t.Errorf("%s: its virtual clusters own %d of %d nodes", name, owned, c.Nodes())
		}
	}
	for name := range want {
		if !slices.Contains(ClusterPresets(), name) {
			t.Errorf("preset %s is missing", name)
		}
	}
}

func TestOpenbHasThePublishedCountsByType(t *testing.T) {
	spec, err := ClusterSpec("openb-1523")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, n := range spec.Racks[0].Nodes {
		got[n.GPUType] += n.Count.N()
	}
	for gpu, nodes := range map[string]int{"G2": 549, "T4": 404, "P100": 134, "G3": 39, "V100M16": 55, "V100M32": 30,
		"A10": 2, "": 310} {
		if got[gpu] != nodes {
			t.Errorf("%d nodes of type %q, want %d", got[gpu], gpu, nodes)
		}
	}
}

func TestClustersAreFoundByFormNameAndPath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(file, []byte("racks:\n  - nodes:\n      - {count: 3, gpus: 5}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, c := range []struct {
		name, calls string
		gpus        int
	}{
		{"pool:7", "pool:7", 7}, {"swf-256", "swf-256", 256}, {"6x8", "6x8", 48}, {"dally:4x2", "dally:4x2", 64},
		{"philly-192", "philly-192", 192},
		{file, "mine", 15}, {"mine.yaml", "mine", 15}, {"./mine.yaml", "mine", 15},
	} {
		spec, err := ClusterSpec(c.name)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		k, err := cluster.New(spec)
		if err != nil || k.GPUs() != c.gpus || spec.Name != c.calls {
			t.Errorf("%s: %d GPUs called %q (%v), want %d called %q", c.name, k.GPUs(), spec.Name, err, c.gpus, c.calls)
		}
	}
}

func TestClustersThatAreNoneAreTheUsersMistake(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("bad.yaml", []byte("racks:\n  - nodes:\n      - {count: 3, gpu: 5}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("folder.yaml", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"":                         "no cluster is named",
		"pool:0":                   `cluster: got "pool:0"`,
		"philly-129":               "did you mean philly-192?",
		"nonsense":                 "presets are",
		"none.yaml":                "there is no such file",
		"a/b":                      "there is no such file",
		"folder.yaml":              "this is a folder",
		"bad.yaml":                 "bad.yaml:3: racks[0].nodes[0].gpu: unknown key; did you mean gpus?",
		"pool:9999999999999999999": "pool:9999999999999999999",
	} {
		_, err := ClusterSpec(name)
		if _, ok := errors.AsType[*fault.Mistake](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want a fault.Mistake with %q", name, err, want)
		}
	}
}
