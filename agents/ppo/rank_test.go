package ppo

import (
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/agents/agenttest"
	"clustergym/env"
	"clustergym/env/vec"
)

// lonely are the peers of a group of one.
type lonely struct{}

func (lonely) Sum(int, []float32, []float64) error { return nil }

func (lonely) Gather(_ int, own, all []byte) error {
	copy(all, own)
	return nil
}

func rankOfOne(cfg Config) agenttest.Constructor[*Rank] {
	return func(spec env.Spec, rows, workers int, seed uint64) (*Rank, error) {
		return NewRank(cfg, spec, rows, workers, seed, 0, lonely{})
	}
}

func TestRanksDoNotAllocate(t *testing.T) {
	for _, norm := range []bool{false, true} {
		cfg := small()
		cfg.Steps, cfg.NormObs, cfg.RewardScale = 8, norm, true
		l := agenttest.NewLoop(t, rankOfOne(cfg),
			agenttest.Setting{Env: "InvalidAction-v1", Rows: 8, Workers: 1, Autoreset: vec.SameStep, Seed: 5, Total: 1 << 30})
		for range 200 {
			l.Step()
		}
		l.AllocatesNothing(t, func(r *Rank) {
			if r.roll.Full() {
				r.roll.Reset()
				r.paid = r.paid[:0]
			}
		})
	}
}

// A group of one is an agent.
func TestARankAloneIsTheAgent(t *testing.T) {
	cfg := busy()
	set := agenttest.Setting{Env: "InvalidAction-v1", Rows: 4, Workers: 1, Autoreset: vec.SameStep, Seed: 5, Total: 4000}
	one, rank := agenttest.NewLoop(t, builder(cfg), set).Train(), agenttest.NewLoop(t, rankOfOne(cfg), set).Train()
	for i, w := range one.Agent.Params().Data {
		if rank.Agent.Params().Data[i] != w {
			t.Fatalf("parameter %d is %v, want %v", i, rank.Agent.Params().Data[i], w)
		}
	}
}

// A checkpoint of ranks has the names of one of Replicas, in their order; what a rank has not given is missed.
func TestRanksNameTheirPartsAsReplicas(t *testing.T) {
	cfg := small()
	cfg.Replicas, cfg.Anchor = 3, 0.1
	names := func(parts []agents.Part) string {
		var list []string
		for _, p := range parts {
			list = append(list, p.Name())
		}
		return strings.Join(list, " ")
	}
	r, err := NewReplicas(cfg, agenttest.Plain(), 6, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var first *Rank
	shares := make([]map[string][]byte, 3)
	for k := range 3 {
		a, err := NewRank(cfg, agenttest.Plain(), 6, 1, 1, k, lonely{})
		if err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			first = a
		}
		shares[k] = map[string][]byte{}
		for _, p := range a.Share() {
			shares[k][p.Name()] = nil
		}
		want := map[int]string{
			0: "weights.safetensors optimizer.safetensors agent.json rollout.bin anchor.safetensors",
			2: "weights.safetensors optimizer.safetensors agent-2.json rollout-2.bin anchor.safetensors",
		}[k]
		if got := names(a.Parts()); want != "" && got != want {
			t.Errorf("rank %d reads %s, want %s", k, got, want)
		}
	}
	whole, err := first.Whole(shares)
	if err != nil || names(whole) != names(r.Parts()) {
		t.Errorf("%v, %s, want %s", err, names(whole), names(r.Parts()))
	}
	delete(shares[1], "rollout-1.bin")
	if _, err := first.Whole(shares); err == nil || !strings.Contains(err.Error(), "rank 1 gave no rollout-1.bin") {
		t.Error(err)
	}
}

func TestRanksThatCannotBe(t *testing.T) {
	cfg := small()
	cfg.Replicas = 2
	for want, c := range map[string]struct{ rows, rank int }{"rank 2 of 2 replicas": {4, 2},
		"5 rows for 2 replicas": {5, 0}} {
		if _, err := NewRank(cfg, agenttest.Plain(), c.rows, 1, 1, c.rank, lonely{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
