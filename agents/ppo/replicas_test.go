package ppo

import (
	"context"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"clustergym/agents"
	"clustergym/agents/agenttest"
	"clustergym/env"
	"clustergym/env/vec"
)

func replicated(cfg Config) agenttest.Constructor[*Replicas] {
	return func(spec env.Spec, rows, workers int, seed uint64) (*Replicas, error) {
		return NewReplicas(cfg, spec, rows, workers, seed)
	}
}

// Replicas with a share of the rows each learn what one agent with all of them learns, up to rounding, where a
// minibatch is the whole rollout: sums of gradients, moments of advantages and scales are the same.
func TestReplicasAreOneAgentWithAllRows(t *testing.T) {
	for _, id := range []string{"InvalidAction-v1", "Nav2D-v1", "ProbeTruncation-v1"} {
		cfg := small()
		cfg.Steps, cfg.Epochs, cfg.Minibatches, cfg.Shards, cfg.LR = 16, 3, 1, 1, 1e-3
		cfg.NormObs, cfg.RewardScale, cfg.EntCoef = true, true, 0.01
		set := agenttest.Setting{Env: id, Rows: 6, Workers: 1, Autoreset: vec.SameStep, Seed: 4, Total: 1 << 20}
		one := agenttest.NewLoop(t, builder(cfg), set)
		cfg.Replicas = 3
		many := agenttest.NewLoop(t, replicated(cfg), set)
		for update := range 3 {
			one.Update()
			many.Update()
			for _, name := range []string{"policy_loss", "value_loss", "entropy", "approx_kl", "grad_norm", "reward_scale",
				"n_updates"} {
				if a, b := one.Stat(name), many.Stat(name); math.Abs(a-b) > 1e-3*(math.Abs(a)+0.01) {
					t.Errorf("%s, update %d: %s is %v by one agent and %v by replicas", id, update, name, a, b)
				}
			}
		}
		var diff, norm float64
		for i, w := range one.Agent.Params().Data {
			d := float64(many.Agent.Params().Data[i] - w)
			diff += d * d
			norm += float64(w) * float64(w)
		}
		if share := math.Sqrt(diff / norm); share > 1e-3 {
			t.Errorf("%s: parameters differ by %.2g of their norm", id, share)
		}
	}
}

// All replicas keep the same weights and moments, bit for bit, although their minibatches differ.
func TestReplicasStayEqual(t *testing.T) {
	cfg := busy()
	cfg.Replicas = 4
	for _, mode := range []vec.Autoreset{vec.SameStep, vec.NextStep} {
		l := agenttest.NewLoop(t, replicated(cfg),
			agenttest.Setting{Env: "InvalidAction-v1", Rows: 8, Workers: 2, Autoreset: mode, Seed: 4, Total: 3000}).Train()
		if l.Stats == nil {
			t.Fatal("nothing was learnt")
		}
		first := l.Agent.members[0]
		for k, a := range l.Agent.members[1:] {
			for i, w := range first.Params().Data {
				if a.Params().Data[i] != w {
					t.Fatalf("%v: replica %d has %v in place %d, replica 0 %v", mode, k+1, a.Params().Data[i], i, w)
				}
			}
			same := true
			for i, x := range first.index {
				same = same && a.index[i] == x
			}
			if same {
				t.Errorf("%v: replicas 0 and %d shuffle alike", mode, k+1)
			}
		}
	}
}

func TestContractOfReplicas(t *testing.T) {
	policy := func(cfg Config) func(env.Spec, io.Reader) (agents.Policy, error) {
		return func(spec env.Spec, weights io.Reader) (agents.Policy, error) { return NewPolicy(cfg, spec, weights) }
	}
	cfg, other := busy(), busy()
	cfg.Replicas = 2
	other.Network.Hidden = []int{17}
	agenttest.Run(t, agenttest.Suite[*Replicas]{
		Name: "ppo", New: replicated(cfg), Policy: policy(cfg), Other: policy(other),
		Worth: func(r *Replicas) string {
			if r.members[1].roll.Len() == 0 || r.members[1].updates == 0 {
				return "not in the middle of a rollout after an update"
			}
			return ""
		},
	})
}

// A replica that fails ends the wait of the others, which would otherwise wait for ever, and its error is the one
// returned.
func TestAReplicaThatFailsEndsTheUpdateOfAll(t *testing.T) {
	cfg := small()
	cfg.Replicas = 3
	l := agenttest.NewLoop(t, replicated(cfg),
		agenttest.Setting{Env: "ProbeContext-v1", Rows: 6, Workers: 1, Autoreset: vec.SameStep, Seed: 4, Total: 1 << 20})
	for !l.Agent.members[0].roll.Full() {
		l.Play()
	}
	l.Agent.members[1].roll.Action.Disc[0] = 99
	done := make(chan error, 1)
	go func() {
		_, err := l.Agent.Learn(context.Background())
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "replica 1") {
			t.Errorf("error %v, want replica 1's", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the others still wait")
	}
}

// A replica sees its own rows, also among those whose episodes have ended.
func TestAReplicaSeesItsOwnRows(t *testing.T) {
	cfg := small()
	cfg.Replicas = 3
	s := agenttest.Plain()
	s.Info = []env.Field{{Name: "info"}}
	r, err := NewReplicas(cfg, s, 6, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	b := env.NewBatch(s, 6)
	for i := range 6 {
		b.Reward[i], b.Obs[2*i], b.Info[i] = float64(i), float32(i), float64(i)
	}
	b.FinalRows = append(b.FinalRows, 1, 4, 5)
	for _, row := range b.FinalRows {
		b.FinalObs = append(b.FinalObs, float32(10*row), 0)
		b.FinalMask = append(b.FinalMask, row == 1, row == 4, row == 5)
		b.FinalInfo = append(b.FinalInfo, float64(100*row))
	}
	for k, want := range [][]int{{1}, {}, {4, 5}} {
		var v env.Batch
		r.view(&v, b, k)
		if v.N != 2 || v.Reward[1] != float64(2*k+1) || v.Obs[2] != float32(2*k+1) || v.Info[1] != float64(2*k+1) ||
			len(v.Mask) != 6 {
			t.Errorf("replica %d sees rewards %v, observations %v and infos %v", k, v.Reward, v.Obs, v.Info)
		}
		if len(v.FinalRows) != len(want) {
			t.Fatalf("replica %d sees ends of rows %v, want %v", k, v.FinalRows, want)
		}
		for j, row := range want {
			if v.FinalRows[j] != row-2*k || v.FinalObs[2*j] != float32(10*row) || v.FinalInfo[j] != float64(100*row) ||
				!v.FinalMask[3*j+map[int]int{1: 0, 4: 1, 5: 2}[row]] {
				t.Errorf("replica %d: end %d is row %d with %v, %v and %v, want row %d", k, j, v.FinalRows[j], v.FinalObs,
					v.FinalInfo, v.FinalMask, row)
			}
		}
	}
}

func TestRowsMustDivideAmongReplicas(t *testing.T) {
	cfg := small()
	cfg.Replicas = 3
	if _, err := NewReplicas(cfg, agenttest.Plain(), 8, 1, 1); err == nil ||
		!strings.Contains(err.Error(), "8 rows for 3 replicas") {
		t.Errorf("error %v", err)
	}
}

func TestReplicasDoNotAllocate(t *testing.T) {
	cfg := small()
	cfg.Steps, cfg.Replicas = 8, 2
	l := agenttest.NewLoop(t, replicated(cfg),
		agenttest.Setting{Env: "InvalidAction-v1", Rows: 8, Workers: 1, Autoreset: vec.SameStep, Seed: 5, Total: 1 << 30})
	for range 200 {
		l.Step()
	}
	l.AllocatesNothing(t, func(r *Replicas) {
		for _, a := range r.members {
			if a.roll.Full() {
				a.roll.Reset()
			}
		}
	})
}
