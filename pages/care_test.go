package pages

import (
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

	"clustergym/distributed/workqueue"
	"clustergym/lab/arena"
	"clustergym/lab/rundir"
)

// Names of entries are labels of metrics, where one that is no UTF-8 would end the program and two that are equal the
// scrape.
func TestNamesAreValidAndDiffer(t *testing.T) {
	dir := t.TempDir()
	first, second := written(t, filepath.Join(dir, "x"), "mine", 1), written(t, filepath.Join(dir, "y"), "mine", 1)
	odd := filepath.Join(dir, "odd")
	if err := os.MkdirAll(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a\xff", "a\xfe"} {
		if err := os.Rename(written(t, odd, "plain", 1), filepath.Join(odd, name)); err != nil {
			t.Skipf("the system has no such names: %v", err)
		}
	}
	paths := []string{first, second, odd}
	all, _ := find(paths)
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
	}
	want := []string{"x/mine", "y/mine", "odd/a\uFFFD", "odd/a\uFFFD " + all[3].ID}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("names %q, want %q", names, want)
	}
	appendText(t, first, `{"step":20,"train":{"l`+"\xff"+`oss":1}}`+"\n")
	code, text, _ := get(t, serve(t, Options{Paths: paths}).URL+"/metrics")
	if code != http.StatusOK || strings.Count(text, "\nclustergym_run_step{") != 4 ||
		!strings.Contains(text, "name=\"l\uFFFDoss\"") {
		t.Errorf("%d %.1500s", code, text)
	}
}

func appendText(t *testing.T, run, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(run, rundir.ProgressFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// The folders that hold parts of runs are not searched, and folders of those names elsewhere are. A link that is named
// is followed.
func TestWhatIsFound(t *testing.T) {
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	a := written(t, runs, "a", 1)
	written(t, filepath.Join(a, rundir.Checkpoints), "part", 1)
	written(t, filepath.Join(runs, "eval"), "b", 1)
	link := filepath.Join(dir, "latest")
	if err := os.Symlink(runs, link); err != nil {
		t.Skipf("the system has no links: %v", err)
	}
	for _, root := range []string{runs, link} {
		all, _ := find([]string{root})
		var names []string
		for _, e := range all {
			names = append(names, e.Name)
		}
		if fmt.Sprint(names) != "[a eval/b]" {
			t.Errorf("%s: %q", root, names)
		}
		if err := Check([]string{root}); err != nil {
			t.Error(err)
		}
	}
}

// Another run that took the folder makes what a page has void, also where it has as many lines, and whichever process
// answers.
func TestStreamsNoticeAnotherRun(t *testing.T) {
	dir := t.TempDir()
	path := written(t, dir, "a", 3)
	url := serve(t, Options{Paths: []string{dir}}).URL
	head := func() string {
		_, text, _ := get(t, serve(t, Options{Paths: []string{dir}}).URL+"/api/curves?id="+idOf(path))
		_, text, _ = strings.Cut(text, `"head":"`)
		return text[:strings.IndexByte(text, '"')]
	}
	old := head()
	stream := url + "/events?run=" + idOf(path) + "&after=3&of=" + old
	appendLines(t, path, 4, 4)
	if got := said(t, stream, "", 1); len(got) != 1 || !strings.HasPrefix(got[0], "4 line ") {
		t.Errorf("got %q", got)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	written(t, dir, "a", 1)
	if err := os.Truncate(filepath.Join(path, rundir.ProgressFile), 0); err != nil {
		t.Fatal(err)
	}
	appendText(t, path, strings.Replace(line(1), `"wall_s":1}`, `"wall_s":1.25}`, 1))
	appendLines(t, path, 2, 9)
	if got := said(t, stream, "", 2); fmt.Sprint(got) != `[0 again {"run":0}]` {
		t.Errorf("got %q", got)
	}
	if now := head(); now == old || len(now) != len(old) {
		t.Errorf("heads %q and %q", old, now)
	}
	if code, _, _ := get(t, stream+",x"); code != http.StatusUnprocessableEntity {
		t.Errorf("two heads of one run: %d", code)
	}
}

// Whoever has most of a long run gets the rest without that the server reads what came before.
func TestStreamsOfLongRunsBeginNearTheEnd(t *testing.T) {
	dir := t.TempDir()
	path := written(t, dir, "long", 10_000)
	s := New(Options{Paths: []string{dir}})
	r := s.data(path)
	if _, err := r.curves("", time.Now(), nil, 0, 1, 16); err != nil {
		t.Fatal(err)
	}
	if n := r.follow(10_005).Lines(); n < 8_000 || n > 10_005 {
		t.Errorf("a tail for line 10,005 begins after line %d", n)
	}
	web := httptest.NewServer(s)
	defer web.Close()
	if got := said(t, web.URL+"/events?run="+idOf(path)+"&after=10008", "", 2); len(got) != 2 ||
		!strings.HasPrefix(got[0], `10009 line {"run":0,"n":10009,"line":{"step":100000,"episodes"`) ||
		!strings.HasPrefix(got[1], "10010 line ") {
		t.Errorf("got %.200q", got)
	}
}

// Curves that nobody asks for are dropped, and read again for whoever does.
func TestCurvesAreNotKeptForever(t *testing.T) {
	dir := t.TempDir()
	path := written(t, dir, "a", 500)
	now := time.Now()
	s := New(Options{Paths: []string{dir}, Now: func() time.Time { return now }})
	r := s.data(path)
	points := func() (n int) {
		c, err := r.curves("", now, []string{"return_mean"}, 0, 1e9, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return c.Keys["return_mean"].All
	}
	if n := points(); n != 500 {
		t.Errorf("%d points", n)
	}
	all, _ := find([]string{dir})
	now = now.Add(keepCurves - time.Second)
	s.keep(all)
	if !r.whole {
		t.Error("curves are dropped too early")
	}
	now = now.Add(2 * time.Second)
	s.keep(all)
	if n := len(r.columns["return_mean"].x); r.whole || n != 2 {
		t.Errorf("whole %v, %d points are kept", r.whole, n)
	}
	appendLines(t, path, 501, 510)
	sum := r.summarise(all[0], now, false)
	if sum.Step != 5100 || *sum.Return != 10 {
		t.Errorf("step %d, return %v", sum.Step, *sum.Return)
	}
	if n := points(); n != 510 {
		t.Errorf("%d points", n)
	}
}

// A line that nests deeper than any of ours ends its reading and not the program.
func TestDeepLinesAreLeftOut(t *testing.T) {
	for _, open := range []string{`{"a":`, "["} {
		if numbers([]byte(`{"b":`+strings.Repeat(open, 1<<20)), func([]byte, float64) {}) {
			t.Error("it counts as a line")
		}
	}
	if !numbers([]byte(`{"b":[[[1]]],"c":{"d":{"e":2}}}`), func([]byte, float64) {}) {
		t.Error("a line of ours does not count")
	}
}

// The queue of a command is shown while it is open, in its page and its metrics.
func TestAQueueIsShown(t *testing.T) {
	var q *workqueue.Status
	s := serve(t, Options{Paths: []string{t.TempDir()}, Queue: func() *workqueue.Status { return q }})
	if code, _, _ := get(t, s.URL+"/api/queue"); code != http.StatusUnprocessableEntity {
		t.Errorf("%d before it is open", code)
	}
	q = &workqueue.Status{Job: "j", Done: 3, Working: 2, Waiting: 1,
		Workers: []workqueue.WorkerStatus{{Name: "w"}, {Name: "v", Silent: time.Second}}}
	for path, want := range map[string]string{
		"/api/list": `"queue":true`, "/api/queue": `"job":"j","done":3`,
		"/metrics": "clustergym_queue_tasks{queue=\"j\",state=\"done\"} 3",
	} {
		if code, text, _ := get(t, s.URL+path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d, no %s in %.300s", path, code, want, text)
		}
	}
	if _, text, _ := get(t, s.URL+"/metrics"); !strings.Contains(text,
		`clustergym_queue_workers{queue="j",state="silent"} 1`) {
		t.Error("no silent worker is counted")
	}
}

// A log that is being written is shown up to its last whole line, and followed like a run.
func TestLogsAreFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	const head = `{"log":"clustergym-decisions/1","policy":"p","nodes":[2]}` + "\n" + `{"job":"a","gpus":1}` + "\n"
	const half = `{"event":"submit",`
	if err := os.WriteFile(path, []byte(head+half), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check([]string{path}); err != nil {
		t.Error(err)
	}
	s := serve(t, Options{Paths: []string{path}})
	if code, text, _ := get(t, s.URL+"/api/replay?id="+idOf(path)); code != http.StatusOK || text != head {
		t.Errorf("%d %q", code, text)
	}
	if err := os.WriteFile(path, []byte(head+half+`"t_s":1,"job":"a"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := said(t, s.URL+"/events?run="+idOf(path)+"&after=2", "", 1); fmt.Sprint(got) !=
		`[3 line {"run":0,"n":3,"line":{"event":"submit","t_s":1,"job":"a"}}]` {
		t.Errorf("got %q", got)
	}
}

// Intervals that a page shows are those of the figure beside them.
func TestIntervalsHoldTheirFigures(t *testing.T) {
	test := readTest(trainedRun(t, "ppo"))
	if test == nil || len(test.Policies) < 3 {
		t.Fatalf("test %+v", test)
	}
	for _, p := range test.Policies {
		if p.IQM != nil && (*p.Low > *p.IQM || *p.IQM > *p.High) {
			t.Errorf("%s: %v is not between %v and %v", p.Name, *p.IQM, *p.Low, *p.High)
		}
	}
}

// The page of a run that has reported nothing yet is one of empty lists.
func TestARunThatHasJustBegunHasAPage(t *testing.T) {
	dir := t.TempDir()
	path := written(t, dir, "a", 1)
	s := serve(t, Options{Paths: []string{dir}})
	if _, text, _ := get(t, s.URL+"/api/run?id="+idOf(path)); !strings.Contains(text, `"events":[]`) {
		t.Errorf("%.500s", text)
	}
	if err := os.Remove(filepath.Join(path, rundir.ProgressFile)); err != nil {
		t.Fatal(err)
	}
	if code, text, _ := get(t, s.URL+"/api/run?id="+idOf(path)); code != http.StatusOK ||
		!strings.Contains(text, `"state":"coming"`) || !strings.Contains(text, `"keys":[]`) {
		t.Errorf("%d %.500s", code, text)
	}
}

// What is played again is what the folder holds now, and results that are too large are not kept.
func TestResultsBelongToTheirCheckpoint(t *testing.T) {
	dir := trainedRun(t, "ppo")
	ckpt, name, err := checkpointOf(dir)
	if err != nil || !strings.HasPrefix(name, ckpt+"\x00") {
		t.Fatalf("%q, error %v", name, err)
	}
	p := player{scenario: &arena.Scenario{}, used: time.Now()}
	if p.rest(); p.scenario == nil {
		t.Error("the workload is dropped at once")
	}
	p.used = p.used.Add(-2 * keepCurves)
	if p.rest(); p.scenario != nil {
		t.Error("the workload of a replay is kept for ever")
	}
	for i := range 5 {
		p.keep(fmt.Sprint(i), result{bytes: make([]byte, mostKept/3)})
	}
	p.keep("large", result{bytes: make([]byte, mostKept+1)})
	if _, ok := p.kept("large"); ok || len(p.done) != 3 || len(p.order) != 3 || p.size != 3*(mostKept/3) {
		t.Errorf("%d results of %d bytes, order %q", len(p.done), p.size, p.order)
	}
}

// Pages, streams and scrapes at once, of runs that grow, have no data in common without a lock (the race detector says
// so).
func TestManyLookAtOnce(t *testing.T) {
	dir := t.TempDir()
	a, b := written(t, dir, "a", 20), written(t, dir, "b", 20)
	s := serve(t, Options{Paths: []string{dir}, Poll: time.Millisecond})
	var wait sync.WaitGroup
	for _, path := range []string{"/api/list?params=1", "/api/run?id=" + idOf(a),
		"/api/curves?id=" + idOf(a) + "&id=" + idOf(b), "/metrics"} {
		for range 2 {
			wait.Go(func() {
				for range 10 {
					r, err := http.Get(s.URL + path) //nolint:noctx // of this test
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
						t.Errorf("%s: %s, error %v", path, r.Status, err)
					}
					_ = r.Body.Close() // read to its end
				}
			})
		}
	}
	for i := 21; i <= 30; i++ {
		appendLines(t, a, i, i)
	}
	if n := len(said(t, s.URL+"/events?run="+idOf(a)+"&run="+idOf(b), "", 50)); n != 50 {
		t.Errorf("%d lines of 50", n)
	}
	said(t, s.URL+"/events?list=1", "", 1)
	wait.Wait()
}

// Many who ask for the same cost as much as one.
func TestMemosMakeOnce(t *testing.T) {
	var m memo[int]
	n := 0
	for range 5 {
		if v, _ := m.get(time.Hour, func() (int, error) { n++; return n, nil }); v != 1 {
			t.Errorf("got %d", v)
		}
	}
	m.until = time.Time{}
	if v, _ := m.get(0, func() (int, error) { n++; return n, nil }); v != 2 {
		t.Errorf("an old one is not made again: %d", v)
	}
}
