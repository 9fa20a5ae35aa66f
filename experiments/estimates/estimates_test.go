package estimates

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/experiments/study"
	"clustergym/experiments/study/studytest"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/lab/predictors"
	"clustergym/traces"
	"clustergym/traces/synth"
)

// smallSettings makes a study that takes some seconds.
func smallSettings(p study.Plan) (settings, error) {
	s, err := settingsOf(study.Plan{Quick: true, Seeds: p.Seeds})
	for i := range s.Logs {
		if o := &s.Logs[i]; o.File == "" {
			o.Synth.Jobs = 1100
		}
	}
	s.Blocks, s.Windows = 4, 2
	return s, err
}

func TestSettingsAreInOrder(t *testing.T) {
	for _, quick := range []bool{false, true} {
		s, err := settingsOf(study.Plan{Quick: quick})
		if err != nil {
			t.Fatal(err)
		}
		generated, recorded := 0, 0
		for _, o := range s.Logs {
			if o.File == "" {
				generated++
			} else {
				recorded++
			}
		}
		if generated != 2 || recorded != 4 {
			t.Errorf("quick %v: %d generated logs, %d recorded", quick, generated, recorded)
		}
	}
	for want, bad := range map[string]func(s *settings){
		"logs":               func(s *settings) { s.Logs = nil },
		"logs[1].name":       func(s *settings) { s.Logs[1].Name = s.Logs[0].Name },
		"logs[0].cluster":    func(s *settings) { s.Logs[0].Cluster = "pond:3" },
		"logs[2].jobs":       func(s *settings) { s.Logs[2].Jobs = -1 },
		"logs[0].load":       func(s *settings) { s.Logs[0].Load = -1 },
		"logs[0].synth.rate": func(s *settings) { s.Logs[0].Synth.Rate = 0 },
		"blocks":             func(s *settings) { s.Blocks = 5 },
		"windows":            func(s *settings) { s.Windows = 1 },
		"splits":             func(s *settings) { s.Splits[0] = 1 },
		"seeds":              func(s *settings) { s.Seeds = 0 },
	} {
		s, err := settingsOf(study.Plan{})
		if err != nil {
			t.Fatal(err)
		}
		bad(&s)
		if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), want+":") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The figures do not depend on the number of workers, and exact run times are the goal that others are behind.
func TestTheStudyInSmall(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds")
	}
	r, want := studytest.Small(t, studyWith(smallSettings), "lost", "lost-generated", "lost-generated-hpc")
	for _, text := range []string{"Left out: Philly, KTH-SP2, RICC, Lublin-256, as there is no --data.",
		">generated / history (causal)<",
		">What is lost by not knowing: sjf+skip<", ` font-weight="700">sjf+skip / gbdt (causal)<`,
		">sjf+skip / history (causal)<"} {
		if !strings.Contains(want, text) {
			t.Errorf("nothing says %q", text)
		}
	}
	for _, log := range []string{"generated", "generated-hpc"} {
		at := func(table, known, column string) float64 {
			labels := labels(log, known)
			labels["scheduler"] = srsf
			v, _, ok := r.Results.Find(table, labels, column)
			if !ok {
				t.Fatalf("no %v in %s", labels, table)
			}
			return v.Value
		}
		noisy, exact := at("whole", knowNoisy2, "mean wait (h)"), at("whole", knowExact, "mean wait (h)")
		fifo := labels(log, knowNone)
		fifo["scheduler"] = fifoSkip
		v, _, _ := r.Results.Find("whole", fifo, "mean wait (h)")
		if than := 100 * (noisy/at("whole", knowHistory, "mean wait (h)") -
			1); math.Abs(at("compared-whole", knowNoisy2, "wait vs history")-than) > 1e-9 {
			t.Errorf("%s: noisy waits %v %% longer than history, want %v", log,
				at("compared-whole", knowNoisy2, "wait vs history"), than)
		}
		if share := 100 * (noisy - exact) / (v.Value - exact); v.Value > exact &&
			math.Abs(at("lost-whole", knowNoisy2, "lost")-share) > 1e-9 {
			t.Errorf("%s: lost %v %%, want %v: waits %v, exact %v, fifo %v", log, at("lost-whole", knowNoisy2, "lost"), share,
				noisy, exact, v.Value)
		}
	}
}

// swfLog writes a log of n jobs in a folder of data. requested returns the requested time of a job that runs for ran,
// -1 if it is not known.
func swfLog(t *testing.T, data, name string, n int, requested func(i, ran int) int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("; Version: 2.2\n; MaxProcs: 100\n")
	for i := range n {
		ran := 60 + i%7*600
		fmt.Fprintf(&b, "%d %d 0 %d %d -1 -1 %d %d -1 1 %d 1 -1 1 -1 -1 -1\n", i+1, 300*i, ran, 1+i%3*30, 1+i%3*30,
			requested(i, ran), i%5+1)
	}
	if err := os.MkdirAll(filepath.Join(data, "swf"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "swf", name), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheFolderOfData(t *testing.T) {
	s, err := settingsOf(study.Plan{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	var input *fault.Mistake
	if _, err := s.cells(study.Plan{Data: empty}); !errors.As(err, &input) ||
		!strings.Contains(err.Error(), "it has none of philly/philly_jobs.csv.gz, swf/KTH-SP2") {
		t.Errorf("an empty folder: %v", err)
	}
	// A folder with one of the logs: it is played, and the others are named.
	data := t.TempDir()
	const kth = "KTH-SP2-1996-2.1-cln.swf.gz"
	swfLog(t, data, kth, 500, func(_, ran int) int { return 2 * ran })
	cells, err := s.cells(study.Plan{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, c := range cells {
		keys = append(keys, c.Key)
	}
	all := strings.Join(keys, " ") + " "
	for want, is := range map[string]bool{
		"whole/KTH-SP2/requested ": true, "quality/KTH-SP2/gbdt-once ": true, "windows/generated/history ": true,
		"Philly": false, "whole/generated/requested": false, "whole/KTH-SP2/gbdt-once": false, "quality/KTH-SP2/exact": false,
	} {
		if strings.Contains(all, want) != is {
			t.Errorf("cell %s: %v, want %v in %s", want, !is, is, all)
		}
	}
	notes := strings.Join(studyWith(func(study.Plan) (settings, error) { return s, nil }).Notes(study.Plan{Data: data}),
		"\n")
	if !strings.Contains(notes, "Left out: Philly, RICC, Lublin-256, as "+data+" does not have them.") {
		t.Error(notes)
	}
	// A file that is too short is the user's mistake.
	swfLog(t, data, kth, 50, func(_, ran int) int { return ran })
	if _, err := s.cells(study.Plan{Data: data}); !errors.As(err, &input) ||
		!strings.Contains(err.Error(), "log KTH-SP2: 50 of its jobs fit pool:100, want 400 or more") {
		t.Errorf("a short log: %v", err)
	}
}

// A log whose requested times are not known has none, not the run times in their place, which would tell predictors
// everything. A log that has them leaves out the few jobs without.
func TestRequestedTimesAreNotMadeUp(t *testing.T) {
	data := t.TempDir()
	swfLog(t, data, "none.swf", 500, func(int, int) int { return -1 })
	swfLog(t, data, "some.swf", 500, func(i, ran int) int {
		if i == 7 {
			return -1
		}
		return 2 * ran
	})
	for name, want := range map[string]struct {
		jobs      int
		requested bool
	}{"none.swf": {500, false}, "some.swf": {499, true}} {
		o := logSettings{Name: "log", Cluster: "pool:100", File: filepath.Join(data, "swf", name)}
		l, err := o.load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(l.jobs) != want.jobs || l.requested != want.requested {
			t.Errorf("%s: %d jobs, requested times %v, want %+v", name, len(l.jobs), l.requested, want)
		}
		for _, j := range l.jobs {
			if l.requested && j.Estimate != 2*j.Work || !l.requested && j.Estimate != 0 {
				t.Fatalf("%s: job %s runs for %v and has %v", name, j.ID, j.Work, j.Estimate)
			}
		}
	}
}

func TestLastTwoByHand(t *testing.T) {
	job := func(submit, work time.Duration, user string, gpus int) traces.Job {
		return traces.Job{Submit: submit * time.Minute, Work: work * time.Minute, User: user, VC: "vc", GPUs: gpus,
			GPUMilli: 1000, Estimate: 7}
	}
	jobs := []traces.Job{
		job(0, 10, "a", 1),  // nothing has ended: an hour
		job(9, 50, "a", 1),  // nor here
		job(10, 20, "a", 1), // 10, which ends now
		job(11, 5, "b", 1),  // nobody's like it: 10, the last of all
		job(31, 30, "a", 1), // 10 and 20
		job(32, 1, "a", 2),  // of all: 5 ended at 16, 20 at 30
		job(60, 1, "a", 1),  // 20 and 50, which ended at 59
		job(70, 1, "", 1),   // a user that is not known: of all, 50 and 30 by 61
	}
	got := withLastTwo(jobs)
	for i, want := range []time.Duration{60, 60, 10, 10, 15, 12*60 + 30, 35, 15*60 + 30} {
		unit := time.Minute
		if i == 5 || i == 7 {
			unit = time.Second
		}
		if got[i].Estimate != want*unit {
			t.Errorf("job %d: %v, want %v", i, got[i].Estimate, want*unit)
		}
	}
	if jobs[0].Estimate != 7 {
		t.Error("the jobs themselves were changed")
	}
}

// Nothing that is learned comes from the future: other run times of the jobs that end after some time change no
// forecast made before it.
func TestForecastsDoNotKnowTheFuture(t *testing.T) {
	c := synth.DefaultConfig()
	c.Jobs = 1600
	original, err := synth.Generate(c, 3)
	if err != nil {
		t.Fatal(err)
	}
	said := func(t *rapid.T, known string, jobs []traces.Job) []predictors.Forecast {
		k, err := know(known, jobs, true, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if k.maker != nil {
			return forecasts(k.maker, jobs, len(jobs)/2)
		}
		all, err := points(&k)
		if err != nil {
			t.Fatal(err)
		}
		return all[len(jobs)/2:]
	}
	rapid.Check(t, func(t *rapid.T) {
		known := rapid.SampledFrom([]string{knowLastTwo, knowHistory, knowGBDT, knowOnce}).Draw(t, "known")
		cut := original[rapid.IntRange(len(original)/2, len(original)-1).Draw(t, "cut")].Submit
		other := from(original)
		start, changed := original[0].Submit, 0
		for i := range other {
			if j := &original[i]; j.Submit+j.Work > cut {
				end := max(j.Submit+j.Work, cut+1) + time.Duration(1+i%97)*time.Hour
				other[i].Work = end - j.Submit
				changed++
			}
		}
		if changed == 0 {
			t.Skip("all jobs have ended")
		}
		a, b := said(t, known, from(original)), said(t, known, other)
		for i := range a {
			if a[i].Job != b[i].Job {
				t.Fatalf("forecasts of other jobs: %s and %s", a[i].Job, b[i].Job)
			}
			if at := original[len(original)/2+i].Submit; at <= cut && a[i].Q != b[i].Q {
				t.Fatalf("%s: the forecast for job %s, submitted at %v, changes with what ends after %v: %v and %v", known,
					a[i].Job, at-start, cut-start, a[i].Q, b[i].Q)
			}
		}
	})
}
