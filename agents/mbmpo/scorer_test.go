package mbmpo_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"clustergym/agents/mbmpo"
	"clustergym/env"
	"clustergym/env/workerplace"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
	"clustergym/nets"
	"clustergym/replay"
)

// scored returns a policy with random weights and the episodes that it played, scored, with random advantages.
func scored(t testing.TB, seed uint64) (*mbmpo.Scorer, *replay.Episodes) {
	t.Helper()
	e, err := world().Open()
	if err != nil {
		t.Fatal(err)
	}
	m, err := mbmpo.NewScorer(e.Spec(), 8, seed)
	if err != nil {
		t.Fatal(err)
	}
	src := rng.Stream(seed, "scorer")
	for i := range m.Params().Data {
		m.Params().Data[i] = float32(src.NormFloat64()) * 0.4
	}
	all, err := replay.NewEpisodes(e.Spec(), 0.99)
	if err != nil {
		t.Fatal(err)
	}
	b, a, ts := env.NewBatch(e.Spec(), 1), env.NewActions(e.Spec(), 1), env.NewTimeStep(e.Spec())
	for k := range 4 {
		_, _, err := env.Play(ctx, e, env.Episode{Seed: seed + uint64(k), Window: -1}, ts, func(ts *env.TimeStep, to env.Action) error {
			copy(b.Obs, ts.Obs)
			copy(b.Mask, ts.Mask)
			if err := m.Act(ctx, b, a, []*rand.Rand{src}); err != nil {
				return err
			}
			to.Disc[0] = a.Disc[0]
			all.Act(ts, to, nil)
			logp, head := m.Told(0, to)
			all.LogProb, all.Head = append(all.LogProb, logp), append(all.Head, head...)
			return nil
		}, func(_ env.Action, ts *env.TimeStep) { all.After(ts) })
		if err != nil {
			t.Fatal(err)
		}
	}
	for range all.Len() {
		all.Advantage = append(all.Advantage, float32(src.NormFloat64()))
	}
	return m, all
}

// Gradients are those of the losses, by differences, away from the policy that acted.
func TestGradientsOfAScorer(t *testing.T) {
	seed := testseed.Or(11)
	t.Logf("seed %d", seed)
	m, e := scored(t, seed)
	src := rng.Stream(seed, "direction")
	p, g := m.Params(), m.Params().Like()
	for i := range p.Data {
		p.Data[i] += float32(src.NormFloat64()) * 0.05
	}
	for name, loss := range map[string]func(g *nets.Params) (float64, error){
		"surrogate":  func(g *nets.Params) (float64, error) { return m.Surrogate(g, e, 0, 0.01) },
		"clipped":    func(g *nets.Params) (float64, error) { return m.Surrogate(g, e, 0.3, 0) },
		"divergence": func(g *nets.Params) (float64, error) { return m.Divergence(g, e) },
	} {
		if _, err := loss(g); err != nil {
			t.Fatal(err)
		}
		for i := range p.Views {
			// Along a random direction in one parameter.
			at, dir := append([]float32(nil), p.Views[i].Data...), make([]float32, p.Views[i].Size())
			want := 0.0
			for k := range dir {
				dir[k] = float32(src.NormFloat64())
				want += float64(dir[k]) * float64(g.Views[i].Data[k])
			}
			const h = 2e-3
			move := func(by float32) float64 {
				for k := range dir {
					p.Views[i].Data[k] = at[k] + by*dir[k]
				}
				v, err := loss(nil)
				if err != nil {
					t.Fatal(err)
				}
				copy(p.Views[i].Data, at)
				return v
			}
			got := (move(h) - move(-h)) / (2 * h)
			if math.Abs(got-want) > 2e-3+0.03*math.Abs(want) {
				t.Errorf("%s, %s: slope %v by differences, %v by the gradient", name, p.Views[i].Name, got, want)
			}
		}
	}
}

// At the policy that acted ratios are 1 and divergences 0, of all transitions and of some.
func TestAScorerScoresWhatItDid(t *testing.T) {
	m, e := scored(t, 3)
	kl, err := m.Divergence(nil, e)
	if err != nil || math.Abs(kl) > 1e-6 {
		t.Errorf("divergence from itself %v, %v", kl, err)
	}
	// What Told said while the episodes were played is what Score writes, bit for bit.
	logp, head := slices.Clone(e.LogProb), slices.Clone(e.Head)
	if err := m.Score(e); err != nil || !slices.Equal(logp, e.LogProb) || !slices.Equal(head, e.Head) {
		t.Errorf("scored otherwise than told; %v", err)
	}
	few := e.Every(3)
	if want := (e.Len() + 2) / 3; few.Len() != want || len(few.LogProb) != want {
		t.Errorf("%d of %d transitions, want %d", few.Len(), e.Len(), want)
	}
	if kl, err = m.Divergence(nil, few); err != nil || math.Abs(kl) > 1e-6 {
		t.Errorf("divergence from itself in every third transition %v, %v", kl, err)
	}
	mean := 0.0
	for _, a := range e.Advantage {
		mean -= float64(a) / float64(e.Len())
	}
	if l, k, err := m.Values(e, 0.2, 0); err != nil || math.Abs(l-mean) > 1e-5 || math.Abs(k) > 1e-6 {
		t.Errorf("both at once: %v and %v, want %v and 0; %v", l, k, mean, err)
	}
	loss, err := m.Surrogate(nil, e, 0.2, 0)
	if err != nil || math.Abs(loss-mean) > 1e-5 {
		t.Errorf("surrogate %v, want %v; %v", loss, mean, err)
	}
}

func TestAScorerNeedsPairs(t *testing.T) {
	e, err := workerplace.New(workerplace.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mbmpo.NewScorer(e.Spec(), 8, 1); err == nil {
		t.Error("a policy that scores pairs, of an observation without pairs")
	}
}
