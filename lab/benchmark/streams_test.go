package benchmark

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/lab/catalog"
	"clustergym/lab/report"
)

// leastGap is by how much of the best rule's mean random play must be worse. Below it a score divides by little, and
// what draws do hides what policies do.
const leastGap = 0.4

// Version 2 has tasks enough to train on, of several environments and rungs; its rules play them, and none knows the
// jobs that come.
func TestVersion2IsValid(t *testing.T) {
	v := Numbered(2)
	generated, environments := 0, map[string]int{}
	for i := range v.Tasks {
		task := &v.Tasks[i]
		cfg, err := task.Config()
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if !cfg.Descriptor().Ongoing || !cfg.Streamed() {
			t.Errorf("%s: %s is no environment with a standing queue", task.Name, cfg.Env.ID)
		}
		environments[cfg.Env.ID]++
		if task.Track == Generated {
			if generated++; cfg.Eval.Streams.Draws < statistic.MinUnits {
				t.Errorf("%s: %d draws are too few for intervals", task.Name, cfg.Eval.Streams.Draws)
			}
		}
		if report.RungOf(cfg.Estimates()) == "" {
			t.Errorf("%s has no rung", task.Name)
		}
		for _, name := range append([]string{Random}, task.Rules...) {
			p, err := cfg.Rival(name)
			if err != nil {
				t.Errorf("%s: %v", task.Name, err)
				continue
			}
			if p.Hindsight || p.Rule != nil && p.Rule.Knows {
				t.Errorf("%s: %s knows what comes", task.Name, name)
			}
		}
	}
	if generated < 12 || len(environments) < 3 {
		t.Errorf("%d generated tasks over %v, want 12 or more over three environments", generated, environments)
	}
	names := Labels()
	if _, err := Labelled("v0"); err == nil || !strings.Contains(err.Error(), `got "v0", want v1 or v2`) {
		t.Errorf("an unknown version, %v: %v", names, err)
	}
}

// Every task of version 2 has a recorded reference, and a scale that is long enough.
func TestScalesOfVersion2AreLong(t *testing.T) {
	v := Numbered(2)
	for i := range v.Tasks {
		task := &v.Tasks[i]
		ref, ok := v.Reference(task)
		if !ok {
			t.Errorf("%s has no reference", task.Name)
			continue
		}
		if gap := (ref.Random - ref.Best) / ref.Best; gap < leastGap {
			t.Errorf("%s: random play is %.0f %% worse than %s, want %.0f %% or more", task.Name, 100*gap, ref.Rule,
				100*leastGap)
		}
		cfg, err := task.Config()
		if err != nil {
			t.Fatal(err)
		}
		if n := task.Units(&cfg, Development); len(ref.RandomBy) != n || len(ref.BestBy) != n ||
			math.Abs(statistic.Mean(ref.RandomBy)-ref.Random) > 1e-9*ref.Random {
			t.Errorf("%s: its reference has %d and %d values, want %d with the mean %v", task.Name, len(ref.RandomBy),
				len(ref.BestBy), n, ref.Random)
		}
	}
}

// small is a version of two tasks that are played in a moment, with its secret.
func small(t *testing.T) (*Version, *Secret) {
	t.Helper()
	secret := &Secret{Salt: [32]byte{1}, Seed: [32]byte{2}}
	v := &Version{Version: 2, State: Open, Commitment: secret.Commitment(), SealedDraws: 12, Tasks: []Task{
		{Name: "queue", Tests: "x", Base: "queuerank-ppo", Track: Generated, version: 2, sealed: 12,
			Set: []string{"env.id=QueueRank-v2", "trace.synth.jobs=3000", "eval.streams.draws=10", "eval.streams.jobs=80",
				"eval.streams.warm=40"}, Rules: []string{"fifo@slots", "sjf@slots"}},
		{Name: "start", Tests: "x", Base: "quickstart", Track: Generated, version: 2, sealed: 12,
			Set: []string{"trace.synth.jobs=3000", "eval.streams.draws=10", "eval.streams.jobs=80",
				"eval.streams.warm=40"}, Rules: []string{"hold", "sjf+skip"}},
	}}
	for i := range v.Tasks {
		task := &v.Tasks[i]
		cfg, err := task.Config()
		if err != nil {
			t.Fatal(err)
		}
		w, err := arena.NewScenario(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		if task.Hash, err = task.Digest(w, &cfg); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Validate(); err != nil {
		t.Fatal(err)
	}
	return v, secret
}

// A row on streams is the same for any number of workers, after interruptions, and when its rules play together.
func TestRowsOnStreamsRepeat(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same games in lab/arena")
	}
	v, secret := small(t)
	whole := t.TempDir()
	if _, err := v.Play(t.Context(), rule("sjf@slots", "sjf@slots"), Options{Dir: whole, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	want := contents(t, whole)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := v.Play(ctx, rule("sjf@slots", "sjf@slots"), Options{Dir: dir, Workers: 3,
		Game: func(task string, _, _ int) {
			if strings.HasPrefix(task, "start") {
				cancel()
			}
		}})
	if cancel(); !errors.Is(err, fault.ErrInterrupted) {
		t.Fatalf("it was not interrupted: %v", err)
	}
	if _, err := v.Play(t.Context(), rule("sjf@slots", "sjf@slots"), Options{Dir: dir, Workers: 3}); err != nil {
		t.Fatal(err)
	}
	together := t.TempDir()
	if _, err := v.PlayRules(t.Context(), Options{Dir: together, Workers: 2}); err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		if got := contents(t, dir)[name]; got != text {
			t.Errorf("%s differs with three workers and after an interruption", name)
		}
	}
	queue := contents(t, filepath.Join(together, "sjf@slots"))
	if part := filepath.Join("parts", "queue", "0.json"); queue[part] != want[part] || want[part] == "" {
		t.Errorf("%s differs where all rules play together", part)
	}
	sealed, err := v.PlayRules(t.Context(), Options{Dir: t.TempDir(), Workers: 2, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range sealed {
		for _, task := range r.Tasks {
			if len(task.Values[0]) != 12 || r.Sealed != secret.Commitment() {
				t.Errorf("%s on %s has %d sealed draws, want 12", r.Policy.Name, task.Task, len(task.Values[0]))
			}
		}
	}
}

// References have what random play and the best rule reach on each draw, and scores intervals over draws.
func TestScoresOnStreamsHaveIntervals(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same games in lab/arena")
	}
	v, secret := small(t)
	results, err := v.PlayRules(t.Context(), Options{Dir: t.TempDir(), Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if v.references, err = v.NewReferences(results, nil); err != nil || len(v.references) != 2 {
		t.Fatalf("references %v, %v", v.references, err)
	}
	var entries []Entry
	for _, r := range results {
		e, err := v.Entry(r)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
		for task, ci := range e.CI95 {
			s := e.Scores[task][0]
			if !(ci[0] <= s && s <= ci[1]) {
				t.Errorf("%s on %s: score %v outside of %v", e.Name, task, s, ci)
			}
			if end := s == 0 && e.Name == Random || s == 1; end != (ci[0] == ci[1]) {
				t.Errorf("%s on %s: score %v with the interval %v", e.Name, task, s, ci)
			}
		}
	}
	all, _ := v.Match()
	r, err := v.NewReport(Development, all, entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Rows {
		if !(x.OnRuns[0] <= x.IQM && x.IQM <= x.OnRuns[1]) {
			t.Errorf("%s: IQM %v outside of %v", x.Name, x.IQM, x.OnRuns)
		}
	}
	// On sealed draws the best rule stays the one of the development draws, and a rule that is above it is named.
	sealed, err := v.PlayRules(t.Context(), Options{Dir: t.TempDir(), Workers: 2, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	refs, err := v.NewReferences(sealed, v.references)
	if err != nil || refs["queue"].Rule != v.references["queue"].Rule || len(refs["queue"].BestBy) != 12 {
		t.Fatalf("sealed references %v, %v", refs, err)
	}
	above := Entry{Name: "other", Kind: KindRule, Scores: map[string]Reached{"queue": {1.2}}}
	if r, err = v.NewReport(Sealed, all, []Entry{above}); err != nil ||
		!strings.Contains(r.aboutTasks(), "other on queue (1.200)") {
		t.Errorf("a rule above the best one: %v, %q", err, r.aboutTasks())
	}
}

// A recorded task whose trace was not fetched is left out with one sentence, and so it is on sealed draws.
func TestRecordedTasksNeedTheirTraces(t *testing.T) {
	t.Setenv(catalog.CacheVar, t.TempDir())
	v := Numbered(2)
	i := slices.IndexFunc(v.Tasks, func(task Task) bool { return task.Track == Recorded })
	if i < 0 {
		t.Fatal("there is no recorded task")
	}
	for _, c := range []struct {
		secret *Secret
		want   string
	}{{nil, "gymctl trace get"}, {&Secret{}, "no sealed part"}} {
		var said []string
		_, err := v.Play(t.Context(), rule("random", "random"), Options{Dir: t.TempDir(), Tasks: []*Task{&v.Tasks[i]},
			Secret: c.secret, Say: func(format string, args ...any) {
				said = append(said, strings.TrimSpace(fault.Mistakef(format, args...).Error()))
			}})
		if err == nil || err.Error() != "policy random plays none of the tasks" {
			t.Errorf("%v", err)
		}
		if len(said) != 1 || !strings.Contains(said[0], c.want) || strings.Contains(said[0], "\n") {
			t.Errorf("it says %q, want one sentence with %q", said, c.want)
		}
	}
}

// The tries of a program are counted from version 2 on, and refused in version 1.
func TestTriesAreCounted(t *testing.T) {
	v, _ := small(t)
	cfg, err := v.Tasks[0].Config()
	if err != nil {
		t.Fatal(err)
	}
	r := &TaskResult{Tries: 3, Values: [][]float64{{1}}}
	p := &Policy{Kind: KindExternal}
	if err := r.protocol(p, &v.Tasks[0], &cfg); err != nil {
		t.Errorf("version 2: %v", err)
	}
	if err := r.protocol(p, &Task{version: 1}, &cfg); err == nil || !strings.Contains(err.Error(), "one try") {
		t.Errorf("version 1: %v", err)
	}
	row := &ReportRow{Numbers: NotReplayed, Tries: 3}
	if got := row.numbers(); got != "not replayed, try 3" {
		t.Errorf("a row of three tries says %q", got)
	}
}
