package mbmpo_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"clustergym/agents/maml"
	"clustergym/env"
	"clustergym/env/workerplace"
	"clustergym/experiments/metascheduler/mbmpo"
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
		_, _, err := env.Play(ctx, e, env.Episode{Seed: seed + uint64(k), Window: -1}, ts,
			func(ts *env.TimeStep, to env.Action) error {
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

// Away from the policy that acted, both losses at once are what they are one by one, bit for bit. Without outputs of
// the policy that acted there is an error.
func TestBothLossesAtOnce(t *testing.T) {
	m, e := scored(t, 5)
	src := rng.Stream(5, "move")
	for i := range m.Params().Data {
		m.Params().Data[i] += float32(src.NormFloat64()) * 0.1
	}
	loss, err := m.Surrogate(nil, e, 0.2, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	kl, err := m.Divergence(nil, e)
	if err != nil || !(kl > 0) {
		t.Fatalf("divergence %v, %v", kl, err)
	}
	if l, k, err := m.Values(e, 0.2, 0.01); err != nil || l != loss || k != kl {
		t.Errorf("both at once: %v and %v, one by one %v and %v; %v", l, k, loss, kl, err)
	}
	e.Head = e.Head[:1]
	if _, _, err := m.Values(e, 0.2, 0.01); err == nil ||
		!strings.Contains(err.Error(), "with 1 outputs of the policy that acted") {
		t.Errorf("without outputs: %v", err)
	}
}

// plain hides that a Scorer is a maml.Teller and a maml.Valuer.
type plain struct{ maml.Model }

// Telling while playing and both losses at once save time, and change no bit of what is learnt. The curvature of every
// third transition is another one.
func TestShortcutsOfALearner(t *testing.T) {
	learnt := func(every int, hide bool) []float32 {
		c := maml.DefaultConfig()
		c.Tasks, c.Before, c.After, c.Baseline, c.CurvatureEvery = 2, 2, 2, "info", every
		w, err := maml.NewFamily(func() (env.Env, error) { return world().Open() })
		if err != nil {
			t.Fatal(err)
		}
		l, err := maml.New(c, w, func() (maml.Model, error) {
			e, err := world().Open()
			if err != nil {
				return nil, err
			}
			m, err := mbmpo.NewScorer(e.Spec(), 8, 3)
			if hide && err == nil {
				return plain{m}, nil
			}
			return m, err
		}, 1, 3)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() //nolint:errcheck // the learner holds only memory
		for range 2 {
			if _, err := l.Learn(ctx); err != nil {
				t.Fatal(err)
			}
		}
		return slices.Clone(l.Params().Data)
	}
	all := learnt(1, false)
	if !slices.Equal(all, learnt(1, true)) {
		t.Error("a policy that tells and computes both losses at once learns something else")
	}
	few := learnt(3, false)
	if slices.Equal(all, few) {
		t.Error("curvature_every changes nothing")
	}
	if !slices.Equal(few, learnt(3, true)) {
		t.Error("with the curvature of every third transition: a policy that tells and computes both losses at once learns something else")
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
