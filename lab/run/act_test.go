package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/lab/actor"
	"clustergym/lab/arena"
	"clustergym/traces"
)

// asked returns the bytes of a request.
func asked(n int, obs []float32, mask []bool) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(n))
	for _, x := range obs {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	for _, legal := range mask {
		b = append(b, map[bool]byte{true: 1}[legal])
	}
	return b
}

// recorder keeps what a policy is shown and what it answers.
type recorder struct {
	agents.Policy
	ask     []byte
	actions []int32
}

func (r *recorder) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	err := r.Policy.Act(ctx, b, dst, src)
	r.ask = append(r.ask, asked(b.N, b.Obs, b.Mask)...)
	r.actions = append(r.actions, dst.Disc...)
	return err
}

// An Actor answers the observations of an evaluation with the actions of the evaluation, one by one and all at once.
func TestActorsAnswerAsTheEvaluationDoes(t *testing.T) {
	raced.Alone(t)
	cfg := tinyRun("ppo")
	cfg.Train.Steps = 256
	dir := t.TempDir()
	trainTo(t, cfg, dir, TrainOptions{})
	run := filepath.Join(dir, "tiny")
	answers, err := actor.New(run)
	if err != nil {
		t.Fatal(err)
	}
	scenario, err := arena.NewScenario(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := scenario.NewEnv(traces.Test, 1)
	if err != nil {
		t.Fatal(err)
	}
	c, err := arena.OpenCheckpoint(run, e.Spec())
	if err != nil {
		t.Fatal(err)
	}
	p, err := arena.NewPolicy(&c.Cfg, e.Spec(), bytes.NewReader(c.Weights))
	if err != nil {
		t.Fatal(err)
	}
	seen := &recorder{Policy: p}
	if _, _, err := agents.NewPlayer(e, seen).Play(t.Context(), env.Episode{Seed: 1, Window: 0}, nil); err != nil {
		t.Fatal(err)
	}
	rows := len(seen.actions)
	if rows < 8 || !slices.ContainsFunc(seen.actions, func(a int32) bool { return a != seen.actions[0] }) {
		t.Fatalf("%d decisions %v are no test", rows, seen.actions)
	}
	// The same observations as one request: first all of them, then all masks.
	each := 4*e.Spec().ObsLen() + e.Spec().MaskLen()
	obs, masks := []byte{}, []byte{}
	for i := range rows {
		row := seen.ask[i*(4+each)+4:][:each]
		obs, masks = append(obs, row[:4*e.Spec().ObsLen()]...), append(masks, row[4*e.Spec().ObsLen():]...)
	}
	together := slices.Concat(binary.LittleEndian.AppendUint32(nil, uint32(rows)), obs, masks)
	none := asked(1, make([]float32, e.Spec().ObsLen()), make([]bool, e.Spec().MaskLen())) // nothing is legal
	var out bytes.Buffer
	if err := answers.Serve(t.Context(), bytes.NewReader(slices.Concat(seen.ask, together, none, seen.ask)), &out); err !=
		nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(&out)
	line, err := r.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var about actor.About
	if err := json.Unmarshal(line, &about); err != nil {
		t.Fatal(err)
	}
	if about.Env != "JobSelect-v1" || !strings.HasPrefix(about.Name, "ppo:tiny@") || len(about.Obs) != len(e.Spec().Obs) ||
		len(about.Sizes) != 1 {
		t.Errorf("about %+v", about)
	}
	number := func() uint32 {
		var b [4]byte
		for i := range b {
			var err error
			if b[i], err = r.ReadByte(); err != nil {
				t.Fatal(err)
			}
		}
		return binary.LittleEndian.Uint32(b[:])
	}
	single := func(what string) {
		for i, want := range seen.actions {
			if n, got := number(), int32(number()); n != 1 || got != want {
				t.Fatalf("%s: decision %d: %d of %d, want %d", what, i, got, n, want)
			}
		}
	}
	single("one by one")
	if n := number(); int(n) != rows {
		t.Fatalf("a reply of %d rows, want %d", n, rows)
	}
	for i, want := range seen.actions {
		if got := int32(number()); got != want {
			t.Errorf("all at once: decision %d: %d, want %d", i, got, want)
		}
	}
	if n := number(); n != 0 {
		t.Fatalf("without a legal action: %d rows", n)
	}
	text := make([]byte, number())
	for i := range text {
		text[i], _ = r.ReadByte()
	}
	if !strings.Contains(string(text), "no legal action") {
		t.Errorf("without a legal action: %s", text)
	}
	single("after a refusal")
	if rest, _ := r.Peek(1); len(rest) != 0 {
		t.Errorf("%d bytes too many", r.Buffered())
	}
	for what, in := range map[string][]byte{
		"a length":    {1, 0},
		"a row":       seen.ask[:each],
		"no rows":     {0, 0, 0, 0},
		"all numbers": {255, 255, 255, 255},
	} {
		var input *fault.Mistake
		if err := answers.Serve(t.Context(), bytes.NewReader(in), &bytes.Buffer{}); !errors.As(err, &input) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := actor.New(dir); err == nil || !strings.Contains(err.Error(), "neither a checkpoint") {
		t.Errorf("a folder without a run: %v", err)
	}
}
