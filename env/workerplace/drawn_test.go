package workerplace

import (
	"testing"

	"clustergym/env"
	"clustergym/env/envtest"
)

// begun returns an environment at the beginning of an episode.
func begun(t *testing.T, c Config, seed uint64) *Env {
	t.Helper()
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Reset(t.Context(), env.Episode{Seed: seed}, env.NewTimeStep(e.Spec())); err != nil {
		t.Fatal(err)
	}
	return e
}

// Every episode of version 2 has a table of its own, which follows from its seed alone; the jobs are those of version 1.
func TestEveryEpisodeDrawsItsTable(t *testing.T) {
	c := DrawnConfig()
	c.Crowding = 0.5
	seen := map[[Types][Types]float64]bool{}
	for seed := range uint64(20) {
		e := begun(t, c, seed)
		seen[e.truth.table] = true
		if again := begun(t, c, seed); again.truth.table != e.truth.table || again.truth.triple != e.truth.triple {
			t.Errorf("seed %d gives two tables", seed)
		}
		// The table of the next episode does not depend on those before it.
		if err := e.Reset(t.Context(), env.Episode{Seed: 7}, env.NewTimeStep(e.Spec())); err != nil {
			t.Fatal(err)
		}
		if e.truth.table != begun(t, c, 7).truth.table {
			t.Errorf("after seed %d, episode 7 has another table", seed)
		}
		one := c
		one.Drawn = false
		if a, b := begun(t, one, seed), begun(t, c, seed); a.jobs[0].kind != b.jobs[0].kind || a.jobs[9].work != b.jobs[9].work {
			t.Errorf("seed %d: version 2 draws other jobs", seed)
		}
	}
	if len(seen) != 20 {
		t.Errorf("%d tables in 20 episodes", len(seen))
	}
	c.Table = 3
	for seed := range uint64(3) {
		if begun(t, c, seed).truth.table != Table(3) {
			t.Errorf("table: 3 is not the table of episode %d", seed)
		}
	}
	if v1 := begun(t, DefaultConfig(), 5); v1.truth.table != Table(1) || v1.Spec().ID != ID {
		t.Errorf("version 1 is %s", v1.Spec().ID)
	}
}

// A recorded workload keeps the pairs that were measured; the others are drawn for each episode.
func TestMeasuredPairsStay(t *testing.T) {
	tr := NewTruth(DrawnConfig())
	var known [Types][Types]bool
	known[1][2] = true
	tr.known = &known
	tr.table[1][2] = 0.4321
	tr.redraw(9)
	if drawn := Table(0); tr.table[1][2] != 0.4321 || tr.table == drawn {
		t.Errorf("the measured pair is %v", tr.table[1][2])
	}
}

func TestVersion2KeepsTheContract(t *testing.T) {
	c := DrawnConfig()
	c.Jobs, c.Servers, c.Slots = 12, 3, 4
	envtest.Run(t, func() env.Env {
		e, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}, envtest.NoAllocs(), envtest.Sealed(), envtest.Cap(2000))
}

// Snapshots of one version are none of the other.
func TestSnapshotsKnowTheirVersion(t *testing.T) {
	old := DefaultConfig()
	old.Table = 0
	blob, err := begun(t, old, 4).AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	e := begun(t, DrawnConfig(), 4)
	if err := e.RestoreSnapshot(blob, env.NewTimeStep(e.Spec())); err == nil {
		t.Error("version 2 takes a snapshot of version 1")
	}
}
