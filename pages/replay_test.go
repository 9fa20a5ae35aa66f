package pages

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/lab/arena"
	"clustergym/lab/decisionlog"
	"clustergym/lab/rundir"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// watcher keeps the events of an episode.
type watcher struct{ events []string }

func eventText(t float64, kind, job string, gpus any) string {
	return fmt.Sprintf("%.9f %s %s %v", t, kind, job, gpus)
}

// Observe implements sim.Observer.
func (w *watcher) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		e := &p.Events[i]
		if e.Job >= 0 {
			w.events = append(w.events, eventText(e.At.Seconds(), e.Kind.String(), v.Trace(e.Job).ID, e.GPUs))
		}
	}
	return nil
}

// A replay holds the events of the simulator, all of them and in their order, and the agent's choices are those that it
// plays.
func TestReplaysAreWhatTheSimulatorDid(t *testing.T) {
	for _, agent := range []string{"ppo", "ddqn"} {
		dir := trainedRun(t, agent)
		s := serve(t, Options{Paths: []string{dir}})
		code, text, h := get(t, s.URL+"/api/replay?id="+idOf(dir)+"&part=test&window=1")
		if code != http.StatusOK || h.Get("Clustergym-Windows") != "3" {
			t.Fatalf("%s: %d, %s windows: %.300s", agent, code, h.Get("Clustergym-Windows"), text)
		}
		cfg, err := rundir.ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		scenario, err := arena.NewScenario(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		var w watcher
		cfg.Eval.Policies = nil
		opt := arena.EvalOptions{Checkpoints: []string{dir}}
		c, err := arena.OpenCheckpoint(dir, specOf(t, scenario))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scenario.Watch(t.Context(), cfg, opt, c.Name, 1, &w); err != nil {
			t.Fatal(err)
		}
		var events []string
		decisions, starts := 0, map[string]bool{}
		var chosen []string
		err = decisionlog.Read(strings.NewReader(text), func(l *decisionlog.Line) error {
			switch {
			case l.Header != nil:
				want := map[string]string{"ppo": "probability", "ddqn": "value"}[agent]
				if l.Header.Scores != want || l.Header.Rival != "sjf@slots" || l.Header.Policy != c.Name {
					t.Errorf("header %+v", l.Header)
				}
			case l.Event != nil:
				events = append(events, eventText(l.Event.At, l.Event.Kind, l.Event.Job, l.Event.GPUs))
				if l.Event.Kind == "start" {
					starts[l.Event.Job] = true
				}
			case l.Decision != nil:
				decisions++
				checkDecision(t, agent, l.Decision)
				if o := l.Decision.Options[l.Decision.Chosen]; o.Do == "start" {
					chosen = append(chosen, o.Job)
				}
			}
			return nil
		})
		if err != nil || decisions == 0 {
			t.Fatalf("%s: %d decisions, error %v", agent, decisions, err)
		}
		// Before the first point of the episode the log has what runs and waits.
		before := len(events) - len(w.events)
		if before < 0 || strings.Join(events[before:], "\n") != strings.Join(w.events, "\n") {
			t.Errorf("%s: the log's events are not the simulator's:\n%.500s\nwant\n%.500s", agent,
				strings.Join(events[max(0, before):], "\n"), strings.Join(w.events, "\n"))
		}
		for _, e := range events[:max(0, before)] {
			if k := strings.Fields(e)[1]; k != "start" && k != "submit" {
				t.Errorf("%s: before the window stands %s", agent, e)
			}
		}
		for _, j := range chosen {
			if !starts[j] {
				t.Errorf("%s: job %s is chosen and never starts", agent, j)
			}
		}
		if len(chosen) == 0 {
			t.Errorf("%s starts nothing", agent)
		}
	}
}

func specOf(t *testing.T, w *arena.Scenario) env.Spec {
	t.Helper()
	e, err := w.NewEnv(traces.Test, 1)
	if err != nil {
		t.Fatal(err)
	}
	return e.Spec()
}

func checkDecision(t *testing.T, agent string, d *decisionlog.Decision) {
	t.Helper()
	sum, best := 0.0, math.Inf(-1)
	for _, o := range d.Options {
		if (o.Score == nil) != o.Illegal {
			t.Fatalf("decision %d: option %+v", d.Number, o)
		}
		if o.Score != nil {
			sum, best = sum+*o.Score, max(best, *o.Score)
		}
	}
	c := d.Options[d.Chosen]
	switch {
	case c.Illegal || d.Rival == nil || d.Options[*d.Rival].Illegal:
		t.Errorf("decision %d: chosen %+v, rival %v", d.Number, c, d.Rival)
	case agent == "ppo" && math.Abs(sum-1) > 1e-5:
		t.Errorf("decision %d: probabilities sum to %v", d.Number, sum)
	case agent == "ddqn" && *c.Score != best:
		t.Errorf("decision %d: the chosen value is %v, the best %v", d.Number, *c.Score, best)
	}
}

// Rules play the validation windows beside the checkpoint, with paired differences.
func TestStandingsHaveIntervals(t *testing.T) {
	dir := trainedRun(t, "ppo")
	s := serve(t, Options{Paths: []string{dir}})
	code, text, _ := get(t, s.URL+"/api/standings?id="+idOf(dir))
	for _, want := range []string{`"windows":2`, `"lower":true`, `"ci95":[`, `"name":"sjf+skip"`,
		`"name":"ppo:tiny-ppo@`} {
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%d: no %s in %.600s", code, want, text)
		}
	}
}
