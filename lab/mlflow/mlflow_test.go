package mlflow

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/lab/rundir"
)

// fake is a tracking server that keeps what it gets.
type fake struct {
	t *testing.T

	mu      sync.Mutex
	down    bool
	names   []string // of experiments
	runs    []string
	params  map[string]string
	values  map[string]map[int64][]float64 // by key and step
	largest int
	status  []string
	told    []string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		http.Error(w, "try later", http.StatusServiceUnavailable)
		return
	}
	refuse := func(code string) {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, `{"error_code":%q,"message":"no"}`, code)
	}
	var body struct {
		Name       string                        `json:"name"`
		RunName    string                        `json:"run_name"`
		Run        string                        `json:"run_id"`
		Experiment string                        `json:"experiment_id"`
		Status     string                        `json:"status"`
		Metrics    []metric                      `json:"metrics"`
		Params     []struct{ Key, Value string } `json:"params"`
	}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			f.t.Error(err)
		}
	}
	switch strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow/") {
	case "experiments/create":
		for _, n := range f.names {
			if n == body.Name {
				refuse("RESOURCE_ALREADY_EXISTS")
				return
			}
		}
		f.names = append(f.names, body.Name)
		answer(w, `{"experiment_id":"7"}`)
	case "experiments/get-by-name":
		answer(w, `{"experiment":{"experiment_id":"7","lifecycle_stage":"active"}}`)
	case "runs/create":
		f.runs = append(f.runs, body.RunName)
		answer(w, `{"run":{"info":{"run_id":"run-%d"}}}`, len(f.runs))
	case "runs/log-batch":
		if len(body.Metrics) > maxMetrics || len(body.Params) > maxParams {
			f.t.Errorf("a batch of %d metrics and %d parameters", len(body.Metrics), len(body.Params))
		}
		f.largest = max(f.largest, len(body.Metrics))
		for _, p := range body.Params {
			f.params[p.Key] = p.Value
		}
		for _, m := range body.Metrics {
			if f.values[m.Key] == nil {
				f.values[m.Key] = map[int64][]float64{}
			}
			f.values[m.Key][m.Step] = append(f.values[m.Key][m.Step], m.Value)
		}
		answer(w, "{}")
	case "runs/update":
		f.status = append(f.status, body.Run+" "+body.Status)
		answer(w, "{}")
	default:
		f.t.Errorf("request to %s", r.URL.Path)
	}
}

func answer(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...) // the sender says what it does not get
}

func (f *fake) set(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

func (f *fake) say(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, fmt.Sprintf(format, args...))
}

// until waits for something that another goroutine does soon.
func (f *fake) until(what string, ok func() bool) {
	f.t.Helper()
	for range 2000 {
		f.mu.Lock()
		done := ok()
		f.mu.Unlock()
		if done {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	f.t.Fatalf("%s does not happen", what)
}

func newFake(t *testing.T) (*fake, *httptest.Server) {
	f := &fake{t: t, params: map[string]string{}, values: map[string]map[int64][]float64{}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return f, s
}

func write(t *testing.T, dir, text string, more bool) {
	t.Helper()
	mode := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if more {
		mode = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	w, err := os.OpenFile(filepath.Join(dir, rundir.ProgressFile), mode, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b,
			`{"step":%d,"episodes":%d,"updates":%d,"return_mean":%d,"length_mean":null,"train":{"policy_loss":0.5},"timing":{"steps_per_s":10,"wall_s":%d}}`+"\n", 10*i, i, i, i, i)
	}
	return b.String()
}

func options(f *fake, url, dir string) Options {
	return Options{URL: url, Experiment: "gym", RunDir: dir, Name: "mine",
		Params: [][2]string{{"seed", "1"}, {"ppo.lr", "0.1"}}, Say: f.say, Every: 5 * time.Millisecond,
		Patience: 5 * time.Second}
}

// Every line arrives once, though the server is away at first and in between, and a resumed run cuts its file and
// repeats.
func TestEveryLineArrivesOnce(t *testing.T) {
	f, server := newFake(t)
	f.set(true)
	dir := t.TempDir()
	write(t, dir, lines(1, 3), false)
	s, err := Start(options(f, server.URL, dir))
	if err != nil {
		t.Fatal(err)
	}
	f.until("a warning", func() bool { return len(f.told) == 1 })
	f.set(false)
	f.until("the first lines", func() bool { return len(f.values["rollout/ep_rew_mean"]) == 3 && len(f.told) == 2 })
	f.set(true)
	write(t, dir, lines(4, 5)+`{"step":50,"eval":{"windows":2,"jct_s":100,"best":true}}`+"\n", true)
	defer func() { t.Logf("told %q", f.told) }()
	f.until("another warning", func() bool { return len(f.told) >= 3 })
	f.set(false)
	f.until("what was missed", func() bool { return len(f.values["rollout/ep_rew_mean"]) == 5 && len(f.told) == 4 })
	s.Close(Killed)
	if len(f.told) != 4 || !strings.Contains(f.told[0], "does not answer") || !strings.Contains(f.told[1], "is back") {
		t.Errorf("told %q", f.told)
	}
	// It goes on from step 30.
	write(t, dir, lines(1, 3), false)
	if s, err = Start(options(f, server.URL, dir)); err != nil {
		t.Fatal(err)
	}
	write(t, dir, lines(4, 2000), true)
	s.Close(Finished)
	for i := int64(1); i <= 2000; i++ {
		if got := f.values["rollout/ep_rew_mean"][10*i]; len(got) != 1 || got[0] != float64(i) {
			t.Fatalf("returns of step %d: %v", 10*i, got)
		}
	}
	if got := f.values["validation/jct_s_geometric_mean"][50]; len(got) != 1 || got[0] != 100 {
		t.Errorf("validations %v", f.values)
	}
	if len(f.runs) != 1 || fmt.Sprint(f.status) != "[run-1 KILLED run-1 RUNNING run-1 FINISHED]" ||
		f.params["ppo.lr"] != "0.1" || f.largest > maxMetrics {
		t.Errorf("runs %v, statuses %v, parameters %v, largest batch %d", f.runs, f.status, f.params, f.largest)
	}
}

// A second run finds the experiment of the first, and a run that was removed at the server begins again.
func TestRunsShareAnExperiment(t *testing.T) {
	f, server := newFake(t)
	for i := range 2 {
		dir := t.TempDir()
		write(t, dir, lines(1, 2), false)
		s, err := Start(options(f, server.URL+"/", dir))
		if err != nil {
			t.Fatal(err)
		}
		s.Close(Finished)
		if len(f.runs) != i+1 || len(f.names) != 1 {
			t.Errorf("runs %v, experiments %v", f.runs, f.names)
		}
	}
}

func TestServersThatAreNoneAreRefused(t *testing.T) {
	for _, u := range []string{"", "localhost:5000", "ftp://x", "http://", "http://a?b"} {
		if _, err := Start(Options{URL: u}); err == nil || !strings.Contains(err.Error(), "mlflow: got") {
			t.Errorf("%q: error %v", u, err)
		}
	}
	for _, u := range []string{"http://me:secret@a?b", "ftp://secret@a", "http://me:secret%@a"} {
		if _, err := Start(Options{URL: u}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("the error about %s says it: %v", u, err)
		}
	}
	f := &fake{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, "<html>") }))
	defer server.Close()
	s, err := Start(options(f, server.URL, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	s.Close(Finished)
	if len(f.told) != 1 || !strings.Contains(f.told[0], "no tracking server") {
		t.Errorf("told %q", f.told)
	}
}

// A server that never answers does not hold up the end for longer than the patience.
func TestTheEndWaitsNoLongerThanItsPatience(t *testing.T) {
	f := &fake{t: t}
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	o := options(f, server.URL, t.TempDir())
	o.Patience = 20 * time.Millisecond
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Close(Finished)
	if len(f.told) != 1 || !strings.Contains(f.told[0], "resume sends them") {
		t.Errorf("told %q", f.told)
	}
}
