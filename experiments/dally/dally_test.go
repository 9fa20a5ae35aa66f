package dally

import (
	"strings"
	"testing"
	"time"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
)

// inSmall returns s with only the cells whose keys begin with one of prefixes.
func inSmall(s study.Study, prefixes ...string) study.Study {
	cells := s.Cells
	s.Expected = nil
	s.Cells = func(p study.Plan) ([]study.Cell, error) {
		all, err := cells(p)
		var some []study.Cell
		for _, c := range all {
			for _, prefix := range prefixes {
				if strings.HasPrefix(c.Key, prefix) {
					some = append(some, c)
				}
			}
		}
		return some, err
	}
	return s
}

// One draw of the workload on which placement matters: waiting for near GPUs beats accepting the first offer, and
// Dally's completion times in this simulator are close to those on its authors' machine with the same jobs and network.
// Among the acceptors, timers beat accepting at once, and long gangs that give way beat the timers.
func TestTheStudyInSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	s := inSmall(Study(), "schedulers/dally-multi/slow/0", "machines/dally-multi/0", "acceptors/nw/tuned",
		"acceptors/nw/at-once", "acceptors/nw/give-way")
	r, err := study.Run(t.Context(), s, study.Options{Plan: study.Plan{Quick: true, Workers: 2}, Dir: t.TempDir(), Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	figure := func(table string, labels map[string]string, column string) float64 {
		t.Helper()
		v, _, ok := r.Results.Find(table, labels, column)
		if !ok {
			t.Fatalf("no %v in table %s", labels, table)
		}
		return v.Value
	}
	line := func(policy string) map[string]string {
		return map[string]string{"workload": "dally-multi", "net": "slow", "policy": policy}
	}
	if auto, none := figure("schedulers", line(tunedTimers), "mean JCT (h)"),
		figure("schedulers", line(acceptAtOnce), "mean JCT (h)"); auto >= none {
		t.Errorf("mean JCT %.3g h with tuned timers, %.3g h with none", auto, none)
	}
	if d := figure("schedulers", line(tunedTimers), "communication vs Tiresias"); d >= 0 {
		t.Errorf("communication %+.1f %% against Tiresias, want less", d)
	}
	on := func(machine string) float64 {
		return figure("machines", map[string]string{"workload": "dally-multi", "policy": tunedTimers, "machine": machine},
			"mean JCT (h)")
	}
	here, theirs, leaking := on(machines()[0]), on(machines()[1]), on(machines()[2])
	if here < .7*theirs || here > 1.4*theirs {
		t.Errorf("mean JCT %.3g h here, %.3g h on the authors' machine", here, theirs)
	}
	if leaking < 3*theirs {
		t.Errorf("mean JCT %.3g h as published, %.3g h where only waiting jobs are asked: leaked GPUs cost more", leaking,
			theirs)
	}
	against := func(acceptor string) float64 {
		return figure("acceptors", map[string]string{"order": "nw", "acceptor": acceptor}, "JCT vs tuned timers")
	}
	if at, gives := against(acceptAtOnce), against(longGiveWay); at <= 20 || gives >= -5 {
		t.Errorf(
			"mean JCT against the tuned timers: accepted at once %+.1f %%, want much more; where long gangs give way %+.1f %%, want less", at, gives)
	}
}

// The judging cells find the weights of a short training of either kind, and every acceptor plays every window.
func TestAcceptorsAreTrainedAndJudged(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds")
	}
	const windows = 2
	agent, err := acceptorRun()
	if err != nil {
		t.Fatal(err)
	}
	own := settings{TrainSteps: 8192, TrainSeeds: 1, Windows: windows, Agent: agent}
	s := study.Study{Name: "dally", Title: "small",
		Cells: func(study.Plan) ([]study.Cell, error) { return own.acceptorCells() }, Tables: Study().Tables}
	r, err := study.Run(t.Context(), s, study.Options{Plan: study.Plan{Quick: true, Workers: 2}, Dir: t.TempDir(), Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	all := []string{learnedGreedy, learnedDrawing, learnedBlind, tunedTimers, fixedTimers, waitForNearest, longGiveWay,
		acceptAtOnce, randomAnswers}
	for order, acceptors := range map[string][]string{"nw": all, "las": append([]string{delayLAS}, all...)} {
		for _, acceptor := range acceptors {
			v, _, ok := r.Results.Find("acceptors", map[string]string{"order": order, "acceptor": acceptor}, "mean JCT (h)")
			if !ok || v.Units != windows || !(v.Value > 0) {
				t.Errorf("%s in order %s: mean JCT %v on %d windows, want it on %d", acceptor, order, v.Value, v.Units, windows)
			}
		}
	}
}

func TestTheFolderOfData(t *testing.T) {
	if _, err := findRecorded(t.TempDir()); err == nil {
		t.Error("an empty folder has no workloads")
	}
	own, err := findRecorded("")
	if err != nil || own != nil {
		t.Errorf("got %v, %v", own, err)
	}
}

// Every fault of the settings is named at once, with the key.
func TestFaultsOfTheSettings(t *testing.T) {
	s := settings{
		Nets: []string{"fast"}, Workloads: []string{"helio"}, Congestion: []float64{1}, CongestionAt: []string{"dally"},
		Overhead: "free", Overheads: []string{"2m"},
		Leases: []string{"10s"}, Clusters: []string{"4 by 4"}, AxesAt: []string{"dally/fast"},
	}
	agent, err := acceptorRun()
	if err != nil {
		t.Fatal(err)
	}
	s.Agent = agent
	var keys []string
	for _, f := range fault.All(s.Validate()) {
		keys = append(keys, f.Key)
	}
	want := "jobs draws congestion_draws axes_draws peer_jobs peer_draws train_steps train_seeds windows nets workloads congestion_at axes_at overhead overheads leases clusters congestion"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, quick := range []bool{true, false} {
		if _, err := settingsOf(study.Plan{Quick: quick}); err != nil {
			t.Error(err)
		}
	}
}

// The least that delay-las must do: less mean JCT than Tiresias under the same leases in every row of the quick tables.
func TestDelayLASBeatsTiresias(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds")
	}
	s := inSmall(Study(), "schedulers/", "congestion/")
	r, err := study.Run(t.Context(), s, study.Options{Plan: study.Plan{Quick: true, Workers: 2}, Dir: t.TempDir(), Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, table := range []string{"order", "order-congestion"} {
		for _, l := range r.Results.Lines(table) {
			if l.Labels["policy"] != delayLAS {
				continue
			}
			rows++
			if v := l.Cells[0]; v.Value >= 0 {
				t.Errorf("%v: mean JCT %+.1f %% [%+.1f, %+.1f] against Tiresias with leases", l.Labels, v.Value, v.Low, v.High)
			}
		}
	}
	if rows != 10 {
		t.Errorf("%d rows, want 10", rows)
	}
}
