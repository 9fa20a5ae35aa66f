package replay_test

import (
	"slices"
	"testing"

	"clustergym/env"
	"clustergym/replay"
)

// played returns two episodes of three and two transitions. Observations, actions, rewards and what a learner fills
// count on.
func played(t *testing.T) *replay.Episodes {
	t.Helper()
	s := env.Spec{ID: "Counting-v0", Obs: []env.Field{{Name: "n", Shape: []int{2}, High: 100}},
		Action: env.ActionSpec{Sizes: []int{3}}}
	e, err := replay.NewEpisodes(s, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(s)
	for i := range 5 {
		ts.Obs[0], ts.Obs[1], ts.Mask[1] = float32(i), float32(-i), i%2 == 0
		e.Act(ts, env.Action{Disc: []int32{int32(i % 3)}}, nil)
		ts.Reward, ts.Kind = float64(10*i), env.Mid
		if i == 2 || i == 4 {
			ts.Kind = env.Terminated
		}
		e.After(ts)
		e.Advantage, e.LogProb = append(e.Advantage, float32(i)), append(e.LogProb, float32(-i))
		e.Head = append(e.Head, float32(i), float32(i), float32(i))
	}
	return e
}

func TestEveryNthTransition(t *testing.T) {
	e := played(t)
	for n, want := range map[int][]float32{1: {0, 1, 2, 3, 4}, 2: {0, 2, 4}, 3: {0, 3}, 4: {0, 4}, 9: {0}} {
		p := e.Every(n)
		if p.Len() != len(want) || p.Episodes() != 0 || !slices.Equal(p.Advantage, want) {
			t.Errorf("every %d: %d transitions with advantages %v, %d of them ended episodes, want %v of one that has not ended",
				n, p.Len(), p.Advantage, p.Episodes(), want)
		}
		for i, x := range want {
			k := int(x)
			if p.Obs[2*i] != x || p.Obs[2*i+1] != -x || p.Mask[3*i+1] != (k%2 == 0) || p.Action.Disc[i] != int32(k%3) ||
				p.Reward[i] != float64(10*k) || p.Discount[i] != e.Discount[k] || p.LogProb[i] != -x ||
				!slices.Equal(p.Head[3*i:3*i+3], []float32{x, x, x}) {
				t.Errorf("every %d: row %d is not that of transition %d", n, i, k)
			}
		}
		p.Obs[0] = 7
		if e.Obs[0] != 0 {
			t.Fatalf("every %d shares memory", n)
		}
	}
	if p := e.Like().Every(2); p.Len() != 0 {
		t.Errorf("every second of nothing: %d transitions", p.Len())
	}
}

func TestAppendKeepsWhatTheLearnerFilled(t *testing.T) {
	e, o := played(t), played(t)
	e.Append(o)
	if e.Len() != 10 || !slices.Equal(e.Start, []int{0, 3, 5, 8, 10}) || !slices.Equal(e.LogProb[5:], o.LogProb) ||
		!slices.Equal(e.Head[15:], o.Head) {
		t.Errorf("%d transitions, episodes from %v, log-probabilities %v", e.Len(), e.Start, e.LogProb)
	}
}

// What was packed of transitions is not that of others.
func TestChangesEndWhatWasPacked(t *testing.T) {
	ts := env.NewTimeStep(played(t).Spec())
	for name, change := range map[string]func(e *replay.Episodes){
		"act": func(e *replay.Episodes) { e.Act(ts, env.Action{Disc: []int32{0}}, nil) },
		"after": func(e *replay.Episodes) {
			e.Act(ts, env.Action{Disc: []int32{0}}, nil)
			e.PackedLen = e.Len()
			e.After(ts)
		},
		"append": func(e *replay.Episodes) { e.Append(played(t)) },
		"reset":  func(e *replay.Episodes) { e.Reset() },
	} {
		e := played(t)
		e.Packed, e.PackedLen = "five", e.Len()
		if change(e); e.PackedLen != 0 {
			t.Errorf("%s: %d transitions count as packed", name, e.PackedLen)
		}
	}
	if p := played(t).Part(0, 1); p.Packed != nil {
		t.Error("a part is packed")
	}
}
