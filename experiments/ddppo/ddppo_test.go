package ddppo

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/traces"
)

// small returns settings of a study that takes some seconds: 8,000 jobs, some 640 a week.
func small(p study.Plan) (settings, error) {
	s, err := settingsOf(study.Plan{Quick: true, Seeds: p.Seeds})
	s.Log.Jobs, s.Log.Rate, s.Log.Work = 8000, 1, 0.75
	s.Held, s.Warm, s.Archive = 2, 1, 500
	s.Replicas, s.Predicted, s.Envs, s.Window, s.Steps, s.Updates, s.SpeedSteps = []int{1, 2}, []int{1, 2}, 4, 32, 512, 2,
		128
	s.PPO.Steps, s.PPO.Shards = 32, 4
	s.Straggler = straggler{Replicas: 2, Envs: 2, Steps: 128, Share: 0.5, Delay: 50 * time.Microsecond}
	return s, errors.Join(err, s.Validate())
}

func TestSettingsAreInOrder(t *testing.T) {
	for _, quick := range []bool{false, true} {
		s, err := settingsOf(study.Plan{Quick: quick})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 11_500_000, true: 100_000}[quick]; s.Log.Jobs != want {
			t.Errorf("quick %v: %d jobs, want %d", quick, s.Log.Jobs, want)
		}
	}
	for want, bad := range map[string]func(s *settings){
		"log.profile: got \"philly\"":            func(s *settings) { s.Log.Profile = "philly"; s.Log.Procs = 0 },
		"log.procs":                              func(s *settings) { s.Log.Procs = 0 },
		"held":                                   func(s *settings) { s.Held = 1 },
		"warm":                                   func(s *settings) { s.Warm = 0 },
		"archive":                                func(s *settings) { s.Archive = -1 },
		"replicas: got [2 4]":                    func(s *settings) { s.Replicas, s.Predicted = []int{2, 4}, []int{2} },
		"replicas: got 3":                        func(s *settings) { s.Replicas = []int{1, 3}; s.Predicted = []int{1} },
		"predicted: got 16":                      func(s *settings) { s.Predicted = []int{16} },
		"predicted: got 1, want one of":          func(s *settings) { s.Predicted = []int{1, 1} },
		"window":                                 func(s *settings) { s.Window = 1 },
		"reward":                                 func(s *settings) { s.Reward = "" },
		"load":                                   func(s *settings) { s.Load = -1 },
		"steps: got 100":                         func(s *settings) { s.Steps = 100 },
		"seeds":                                  func(s *settings) { s.Seeds = 0 },
		"updates":                                func(s *settings) { s.Updates = 0 },
		"ppo.minibatches: got 8":                 func(s *settings) { s.PPO.Minibatches = 8 },
		"ppo.replicas: got 2":                    func(s *settings) { s.PPO.Replicas = 2 },
		"straggler.share: got 1":                 func(s *settings) { s.Straggler.Share = 1 },
		"straggler.delay: got 1h0m0s":            func(s *settings) { s.Straggler.Delay = time.Hour },
		"straggler.envs: got 3":                  func(s *settings) { s.Straggler.Envs = 3 },
		"ppo.lr: got 2, want a number in (0, 1]": func(s *settings) { s.PPO.LR = 2 },
	} {
		s, err := settingsOf(study.Plan{})
		if err != nil {
			t.Fatal(err)
		}
		bad(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The records hold the jobs of the log, and windows are parts of the training part.
func TestTheIndexHoldsTheLog(t *testing.T) {
	s, err := small(study.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path, records := filepath.Join(dir, logFile), filepath.Join(dir, indexFile)
	if err := s.write(t.Context(), new(study.Bench), path); err != nil {
		t.Fatal(err)
	}
	rows, err := makeIndex(t.Context(), new(study.Bench), path, records, s.Log.Jobs)
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.open(records, rows)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close() //nolint:errcheck // open for reading only
	l, err := openLog(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // open for reading only
	jobs, err := traces.ReadAll(l)
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != x.jobs || x.jobs != s.Log.Jobs || x.procs != s.Log.Procs {
		t.Fatalf("%d jobs in the log, %d in the index of %d processors", len(jobs), x.jobs, x.procs)
	}
	for i := range jobs {
		jobs[i].ID, jobs[i].Status = "", traces.StatusUnknown
	}
	again, err := traces.ReadAll(x.stream(3))
	if err != nil {
		t.Fatal(err)
	}
	first := jobs[3].Submit
	for i, j := range jobs[3:] {
		j.Submit -= first
		if fmt.Sprint(j) != fmt.Sprint(again[i]) {
			t.Fatalf("job %d is %+v, and in the index %+v", i+3, j, again[i])
		}
	}
	end := jobs[len(jobs)-1].Submit - time.Duration(s.Held+s.Warm)*week
	seen := map[int]bool{}
	for seed := range uint64(200) {
		got, err := x.At(traces.Training, seed, -1)
		w, at := got.Counting(), got.First
		if err != nil || len(w) != s.Window || at < s.Archive {
			t.Fatalf("seed %d: %d jobs from %d on, %v", seed, len(w), at, err)
		}
		if w[0].Submit != jobs[at].Submit || w[len(w)-1].Submit > end {
			t.Fatalf("seed %d: the window of job %d lasts from %v to %v; training ends at %v", seed, at, w[0].Submit,
				w[len(w)-1].Submit, end)
		}
		seen[at] = true
	}
	if len(seen) < 150 {
		t.Errorf("200 windows begin at %d jobs", len(seen))
	}
	if _, err := x.At(traces.Test, 1, -1); err == nil {
		t.Error("there is a test window")
	}
}

// The figures do not depend on the number of workers, but for those of the clock; N replicas learn what one does, up to
// rounding; every claim has a figure, and tables fit a terminal.
func TestTheStudyInSmall(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds")
	}
	var first string
	for _, workers := range []int{1, 3} {
		dir := t.TempDir()
		own := studyWith(small)
		own.Expected = nil
		r, err := study.Run(t.Context(), own, study.Options{Plan: study.Plan{Quick: true, Workers: workers}, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "rows.csv"))
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(b)
		} else if string(b) != first {
			t.Error("rows.csv depends on the number of workers")
		}
		for _, c := range r.Study.Claims(study.Plan{Quick: true}) {
			if v, _, ok := r.Results.Find(c.Table, c.Line, c.Column); !ok || math.IsNaN(v.Value) {
				t.Errorf("%s: there is no figure in column %s of table %s, line %v", c.What, c.Column, c.Table, c.Line)
			}
		}
		for _, l := range r.Results.Lines("equal") {
			if l.Cells[1].Value != 1 || l.Labels["update"] == "1" && !(l.Cells[0].Value < 0.02) {
				t.Errorf("%v: a distance of %v, same bits %v", l.Labels, l.Cells[0].Value, l.Cells[1].Value)
			}
		}
		for _, l := range r.Results.Lines("straggler") {
			if same := l.Cells[5].Value; same == 0 {
				t.Errorf("%s: a replica that waits learns something else", l.Labels["way"])
			}
		}
		for _, l := range r.Results.Lines("pass") {
			if l.Cells[0].Value != 8000 || !(l.Cells[1].Value >= 1) {
				t.Errorf("%s: %v jobs, bounded slowdown %v", l.Labels["policy"], l.Cells[0].Value, l.Cells[1].Value)
			}
		}
		var text strings.Builder
		if err := r.WriteTable(&text); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if strings.Contains(line, "  ") && !strings.HasPrefix(line, "source") && len([]rune(line)) > 121 {
				t.Errorf("a line of a table has %d columns: %s", len([]rune(line)), line)
			}
		}
	}
}

// A recorded log is read from the folder of --data. What is wrong with it is said in one sentence, with the line.
func TestBadLogs(t *testing.T) {
	line := func(id int, submit string, procs int) string {
		return fmt.Sprintf("%d %s -1 100 %d -1 -1 %d 200 -1 1 1 -1 -1 -1 -1 -1 -1\n", id, submit, procs, procs)
	}
	const head = "; MaxProcs: 8\n"
	var good strings.Builder
	good.WriteString(head)
	for i := range 300 {
		good.WriteString(line(i+1, fmt.Sprint(7200*i), 1+i%8))
	}
	for name, c := range map[string]struct{ text, want string }{
		"broken":     {head + line(1, "0", 1) + "2 10 -1 100\n", "ddppo.swf:3: got \"4 fields\", want 18"},
		"not a time": {head + line(1, "0", 1) + line(2, "soon", 1), "ddppo.swf:3: submit time"},
		"backwards":  {head + line(1, "10", 1) + line(2, "5", 1), "ddppo.swf:3: submit time"},
		"large":      {head + line(1, "0", 1) + line(2, "5", 9), "job 2 asks for 9 processors, and the machine has 8"},
		"no machine": {line(1, "0", 1) + line(2, "5", 1), "its header has no MaxProcs"},
		"one job":    {head + line(1, "0", 1), "it has 1 jobs that ran"},
		"short":      {good.String(), "want 320 or more: held, warm or archive is too much"},
	} {
		data := t.TempDir()
		if err := os.WriteFile(filepath.Join(data, dataFiles[0]), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := study.Run(t.Context(), studyWith(small),
			study.Options{Plan: study.Plan{Quick: true, Workers: 1, Data: data}, Dir: t.TempDir(), Only: "index"})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		var input *fault.Mistake
		if !errors.As(err, &input) {
			t.Errorf("%s: %T is not the user's mistake", name, err)
		}
	}
	if _, err := studyWith(small).Cells(study.Plan{Quick: true, Data: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), "it has none of ddppo.swf") {
		t.Errorf("an empty folder: %v", err)
	}
	less := func(p study.Plan) (settings, error) {
		s, err := small(p)
		s.Archive, s.Held = 10, 2
		s.Window = 16
		return s, err
	}
	var longer strings.Builder // 50 days
	longer.WriteString(head)
	for i := range 300 {
		longer.WriteString(line(i+1, fmt.Sprint(14400*i), 1+i%8))
	}
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, dataFiles[0]), []byte(longer.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := study.Run(t.Context(), studyWith(less),
		study.Options{Plan: study.Plan{Quick: true, Workers: 1, Data: data}, Dir: t.TempDir(), Only: "index"})
	if err != nil {
		t.Fatal(err)
	}
	if v, _, ok := r.Results.Find("log", map[string]string{"log": "recorded"}, "jobs"); !ok || v.Value != 300 {
		t.Errorf("the log has %v jobs, want 300", v.Value)
	}
}

func TestNamesOfRules(t *testing.T) {
	var all []string
	for i := range rules {
		for _, rung := range rungs {
			if _, err := rules[i].scheduler(rung); err != nil {
				t.Errorf("%s: %v", rules[i].name, err)
			}
		}
		if slices.Contains(all, rules[i].name) {
			t.Errorf("two rules are called %s", rules[i].name)
		}
		all = append(all, rules[i].name)
	}
}
