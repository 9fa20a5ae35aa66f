package envs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/env/jobselect"
	"clustergym/env/policymix"
	"clustergym/env/queuerank"
	"clustergym/internal/raced"
)

var update = flag.Bool("update", false, "rewrite testdata")

// golden compares lines with testdata/name; -update rewrites the file.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for _, l := range lines {
		if !slices.Contains(want, l) {
			t.Errorf("%s does not have\n  %s", file, l)
		}
	}
	for _, l := range want {
		if !slices.Contains(lines, l) {
			t.Errorf("%s has, and this program does not give,\n  %s", file, l)
		}
	}
}

// Scenario hashes decide whether remote and resumed runs have the same episodes, so they never change for equal
// arguments. Spaces, episodes, rewards and snapshots do not change under one id either.
func TestScenariosKeepTheirHashesAndEpisodes(t *testing.T) {
	raced.Alone(t)
	small := wire.Map{
		{Key: "window", Value: int64(16)}, {Key: "cluster", Value: "2x4"},
		{Key: "trace", Value: wire.Map{{Key: "synth", Value: wire.Map{{Key: "jobs", Value: int64(400)}}}}},
	}
	with := func(m wire.Map, more ...wire.Pair) wire.Map { return append(slices.Clone(m), more...) }
	cases := []struct {
		name, id string
		kwargs   wire.Map
	}{}
	for _, id := range IDs() {
		cases = append(cases, struct {
			name, id string
			kwargs   wire.Map
		}{id, id, nil})
	}
	type pair = wire.Pair
	for _, c := range []struct {
		name, id string
		kwargs   wire.Map
	}{
		{"small", jobselect.V1, smallKwargs()},
		{"relative", jobselect.V1, smallKwargs(pair{Key: "relative", Value: "sjf"}, pair{Key: "reward", Value: "wait"})},
		{"blind", jobselect.V1, smallKwargs(pair{Key: "estimates", Value: "none"}, pair{Key: "slots", Value: "oldest"})},
		{"test", jobselect.V1, smallKwargs(pair{Key: "split", Value: "test"})},
		{"tree", "GPUPick-v1", with(small, pair{Key: "idle", Value: true})},
		{"preempt", jobselect.V1, smallKwargs(pair{Key: "preempt", Value: true}, pair{Key: "images", Value: false},
			pair{Key: "running", Value: int64(6)}, pair{Key: "checkpoint", Value: "10s"}, pair{Key: "restart", Value: "20s"})},
		{"history", jobselect.V1, smallKwargs(pair{Key: "estimates", Value: "history"},
			pair{Key: "relative", Value: "auto"})},
		{"rated", "GPUPick-v1", with(small, pair{Key: "table", Value: true})},
		{"peer", queuerank.V1, wire.Map{{Key: "window", Value: int64(32)}, {Key: "peer", Value: true},
			{Key: "reward", Value: "minus"}}},
		{"rltune", queuerank.V1, wire.Map{{Key: "window", Value: int64(24)}, {Key: "rltune", Value: "programme"},
			{Key: "base", Value: "sjf"}, {Key: "estimates", Value: "exact"}, {Key: "metric", Value: "wait"},
			{Key: "cluster", Value: "4x8"},
			{Key: "trace",
				Value: wire.Map{{Key: "synth",
					Value: wire.Map{{Key: "profile", Value: "philly"}, {Key: "procs", Value: int64(0)},
						{Key: "jobs", Value: int64(400)}}}}}}},
		{"easy", queuerank.V1, with(wire.Map{{Key: "window", Value: int64(32)}}, pair{Key: "backfill", Value: "easy"},
			pair{Key: "reward", Value: "dense"})},
		{"hold", policymix.V1, with(small, pair{Key: "warm", Value: int64(8)}, pair{Key: "hold", Value: "30m"})},
		{"relative", delayoffer.V1, wire.Map{{Key: "window", Value: int64(16)}, {Key: "relative", Value: true}}},
		{"makespan", "DAGPlace-v1", wire.Map{{Key: "tasks", Value: int64(20)}, {Key: "gpus", Value: int64(6)},
			{Key: "reward", Value: "makespan"}}},
		{"few", "WorkerPlace-v1", wire.Map{{Key: "jobs", Value: int64(8)}, {Key: "servers", Value: int64(3)}}},
	} {
		cases = append(cases, struct {
			name, id string
			kwargs   wire.Map
		}{c.id + "/" + c.name, c.id, c.kwargs})
	}
	r := registry(t, nil)
	var lines []string
	for _, c := range cases {
		m := makeEnvs(t, r, c.id, c.kwargs, 1)
		lines = append(lines, fmt.Sprintf("%s scenario %s", c.name, m.SHA),
			fmt.Sprintf("%s episode %s", c.name, episodeDigest(t, m.Envs[0])))
	}
	golden(t, "golden_scenarios.txt", lines)
}

// episodeDigest returns a hash of the spaces and of one episode under random play, with a snapshot in its middle.
func episodeDigest(t *testing.T, e env.Env) string {
	t.Helper()
	h := sha256.New()
	spec := e.Spec()
	// The hashes are older than the fields Group, Filled, Critic and Metric, which change no episode.
	fmt.Fprintf(h, "%s\n",
		regexp.MustCompile(` (Group:\d+|Filled:\d+|Critic:(true|false)|Metric:(true|false))`).ReplaceAllString(
			fmt.Sprintf("%+v", spec), ""))
	playInto(t, h, e)
	return hex.EncodeToString(h.Sum(nil))
}

// playDigest returns a hash of one episode under random play.
func playDigest(t *testing.T, e env.Env) string {
	t.Helper()
	h := sha256.New()
	playInto(t, h, e)
	return hex.EncodeToString(h.Sum(nil))
}

// playInto writes one episode under random play to h, with a snapshot in its middle.
func playInto(t *testing.T, h hash.Hash, e env.Env) {
	t.Helper()
	spec := e.Spec()
	ts, acts, src := env.NewTimeStep(spec), env.NewActions(spec, 1), rand.New(rand.NewPCG(7, 11))
	ep := env.Episode{Seed: 5, Window: -1}
	if err := e.Reset(t.Context(), ep, ts); err != nil {
		t.Fatal(err)
	}
	put := func() {
		for _, x := range []any{int64(ts.Kind), ts.Reward, int64(ts.Elapsed), ts.Obs, ts.Mask, ts.Info} {
			if f, ok := x.([]float64); ok { // one form of what is not a number
				f = slices.Clone(f)
				for i := range f {
					if math.IsNaN(f[i]) {
						f[i] = math.NaN()
					}
				}
				x = f
			}
			if err := binary.Write(h, binary.LittleEndian, x); err != nil {
				t.Fatal(err)
			}
		}
	}
	put()
	for step := 0; step < 300 && !ts.Kind.Last(); step++ {
		at := 0
		for k, size := range spec.Action.Sizes {
			var legal []int32
			for a := range size {
				if ts.Mask[at+a] {
					legal = append(legal, int32(a))
				}
			}
			acts.Disc[k] = legal[src.IntN(len(legal))]
			at += size
		}
		for k := range spec.Action.Low {
			acts.Cont[k] = spec.Action.Low[k] + (spec.Action.High[k]-spec.Action.Low[k])*float32(src.Float64())
		}
		if err := e.Step(t.Context(), acts.Row(0), ts); err != nil {
			t.Fatal(err)
		}
		put()
		if step == 40 {
			if s, ok := e.(env.Snapshotter); ok {
				b, err := s.AppendSnapshot(nil)
				if err != nil {
					t.Fatal(err)
				}
				h.Write(b)
			}
		}
	}
}

// RLScheduler-v1 and RLTune-v1 were keys of QueueRank-v1 once: either form has the same scenario and the same episodes.
func TestOlderFormsKeepTheirScenarios(t *testing.T) {
	type pair = wire.Pair
	own := regexp.MustCompile(`^\{ID:\S+ `)
	for _, c := range []struct {
		id         string
		key, older pair
		more       wire.Map
	}{
		{"RLScheduler-v1", pair{Key: "filter", Value: true}, pair{Key: "peer", Value: true},
			wire.Map{{Key: "filter", Value: true}}},
		{"RLTune-v1", pair{Key: "placement", Value: "first"}, pair{Key: "rltune", Value: "first"},
			wire.Map{{Key: "cluster", Value: "4x8"}, {Key: "estimates", Value: "exact"}}},
		{"RLTune-v1", pair{Key: "base", Value: "wfp3"}, pair{Key: "rltune", Value: "programme"},
			wire.Map{{Key: "base", Value: "wfp3"}, {Key: "cluster", Value: "4x8"}, {Key: "estimates", Value: "exact"}}},
	} {
		trace := wire.Map{{Key: "synth",
			Value: wire.Map{{Key: "profile", Value: "philly"}, {Key: "procs", Value: int64(0)},
				{Key: "jobs", Value: int64(400)}}}}
		if c.id == "RLScheduler-v1" {
			trace = wire.Map{{Key: "seed", Value: int64(3)}}
		}
		common := wire.Map{{Key: "window", Value: int64(24)}, {Key: "reward", Value: "minus"}, {Key: "trace", Value: trace}}
		all := slices.DeleteFunc(slices.Clone(c.more), func(p pair) bool { return p.Key == c.key.Key })
		r := registry(t, nil)
		a := makeEnvs(t, r, c.id, append(append(slices.Clone(common), all...), c.key), 1)
		b := makeEnvs(t, r, queuerank.V1, append(append(slices.Clone(common), c.more...), c.older), 1)
		if a.SHA != b.SHA {
			t.Errorf("%s: scenario %s, with %s: %v of %s it is %s", c.id, a.SHA, c.older.Key, c.older.Value, queuerank.V1, b.SHA)
		}
		x, y := fmt.Sprintf("%+v", a.Envs[0].Spec()), fmt.Sprintf("%+v", b.Envs[0].Spec())
		if own.ReplaceAllString(x, "") != own.ReplaceAllString(y, "") {
			t.Errorf("%s: spec %s, in the older form %s", c.id, x, y)
		}
		if x, y := playDigest(t, a.Envs[0]), playDigest(t, b.Envs[0]); x != y {
			t.Errorf("%s: episode %s, in the older form %s", c.id, x, y)
		}
	}
}
