package asrpt

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/experiments/study"
	"clustergym/experiments/study/studytest"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
)

// few returns settings whose cells take a moment.
func few(p study.Plan) (settings, error) {
	s, err := settingsOf(p)
	s.Draws, s.Jobs, s.History, s.Trees, s.Cuts = 2, 80, 400, 5, 2
	return s, err
}

func TestTheReportIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds")
	}
	r, _ := studytest.Small(t, studyWith(few))
	for _, c := range r.Study.Claims(study.Plan{Quick: true}) {
		if v, _, ok := r.Results.Find(c.Table, c.Line, c.Column); !ok || math.IsNaN(v.Value) {
			t.Errorf("%s: there is no figure in column %s of table %s, line %v", c.What, c.Column, c.Table, c.Line)
		}
	}
}

func TestTheFolderOfData(t *testing.T) {
	s, err := few(study.Plan{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	var input *fault.Mistake
	data := t.TempDir()
	if _, err := s.cells(study.Plan{Data: data}); !errors.As(err, &input) ||
		!strings.Contains(err.Error(), "it has none of "+filepath.FromSlash("philly/philly_jobs.csv.gz")) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(data, "philly"), 0o750); err != nil {
		t.Fatal(err)
	}
	write := func(jobs int) {
		t.Helper()
		text := "timestamp,duration,num_gpus,gpu_time,cluster\n"
		for i := range jobs {
			text += fmt.Sprintf("2017-10-%02d %02d:%02d:%02d,%d.0,%d,1.0,vc%d\n", 1+i/86400, i/3600%24, i/60%60, i%60, 100+i%977,
				1+i%5, i%3)
		}
		if err := os.WriteFile(filepath.Join(data, "philly", "philly_jobs.csv.gz"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	play := func() ([]study.Row, error) {
		t.Helper()
		all, err := s.cells(study.Plan{Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return all[len(all)-1].Run(t.Context(), &study.Bench{Workers: 1})
	}
	write(200)
	if _, err := play(); !errors.As(err, &input) || !strings.Contains(err.Error(), "too few for windows of 80") {
		t.Errorf("a short log: %v", err)
	}
	write(1500)
	rows, err := play()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Labels["workload"] != "Philly" || math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
			t.Errorf("row %+v", r)
		}
	}
	if len(rows) == 0 {
		t.Error("no rows")
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	s, err := settingsOf(study.Plan{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Servers, s.NIC, s.Jobs, s.Load, s.Wait.Ratio, s.Errors, s.Speeds = 3, 0, 1, 0, .5, []float64{-1}, []float64{0}
	s.Loads, s.NICs, s.Waits = []float64{.7, .7}, []float64{2, 3, 2}, []waiting{{}}
	s.Logs = []record{{Name: generated, File: "", Windows: 0}}
	err = s.Validate()
	for _, want := range []string{
		"servers: got 3", "nic: got 0", "jobs: got 1, want 50 to 100000", "load: got 0", "ratio: got 0.5", "errors: got -1",
		"speeds: got 0", `logs: got "generated"`, "loads: got 0.7, want each once", "nics: got 2, want each once",
		"waits: got nobody, want each once", "file: got", "windows: got 0",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s, _ = settingsOf(study.Plan{Quick: true})
	if s.GPUs = 1; s.Validate() == nil || !strings.Contains(s.Validate().Error(), "gpus: got 1, want 2 to 64") {
		t.Errorf("servers of one GPU: %v", s.Validate())
	}
}
