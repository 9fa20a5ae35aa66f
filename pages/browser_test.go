package pages

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	atrain "clustergym/agents/train"
	"clustergym/distributed/workqueue"
	"clustergym/experiments/papers"
	"clustergym/experiments/study"
	"clustergym/internal/chrome"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/decisionlog"
	"clustergym/lab/run"
	"clustergym/lab/rundir"
	"clustergym/lab/sweep"
)

var update = flag.Bool("update", false, "write the pictures of docs/images again")

const soon = 40 * time.Second // what takes milliseconds on an idle machine

// browse opens a browser.
func browse(t *testing.T, width, height int) *chrome.Page {
	t.Helper()
	program := os.Getenv(chrome.Variable)
	if program == "" {
		t.Skip(chrome.Variable + " names no Chromium (make browser does)")
	}
	p, err := chrome.Open(program, width, height)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range p.Complaints() {
			t.Errorf("the page complains: %.500s", c)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, p *chrome.Page, expression string) {
	t.Helper()
	must(t, p.Wait(t.Context(), expression, soon))
}

// eval returns the value of an expression in the page.
func eval[T any](t *testing.T, p *chrome.Page, expression string) (v T) {
	t.Helper()
	must(t, p.Eval(expression, &v))
	return v
}

const ready = "document.documentElement.dataset.state === 'ready'"

// open opens a page and waits until it is drawn.
func open(t *testing.T, p *chrome.Page, url string) {
	t.Helper()
	must(t, p.Go("about:blank")) // an address that differs in its hash alone would not be loaded
	must(t, p.Go(url))
	wait(t, p, ready)
	must(t, p.Eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))", nil))
}

// picture writes docs/images/NAME.png with -update.
func picture(t *testing.T, p *chrome.Page, name string) {
	t.Helper()
	if !*update {
		return
	}
	b, err := p.Picture(false)
	must(t, err)
	dir := filepath.Join("..", "docs", "images")
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, name+".png"), b, 0o644)) //nolint:gosec // part of the documentation
	t.Logf("%s.png has %d kB", name, len(b)>>10)
}

// page is a server at an address of its own that can be killed and started again.
type page struct {
	t    *testing.T
	addr string
	stop func()
}

func (s *page) start(opt Options) {
	s.t.Helper()
	if s.addr == "" {
		s.addr = "127.0.0.1:0"
	}
	opt.Poll = 50 * time.Millisecond
	var l net.Listener
	var err error
	for range 100 { // the system may keep the address for a moment
		if l, err = net.Listen("tcp", s.addr); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	must(s.t, err)
	s.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = New(opt).Serve(ctx, l) }() // its end is the test's doing
	s.stop = func() { cancel(); <-done }
}

// steps are the steps of progress.jsonl that have a return.
func steps(t *testing.T, dir string) (all []float64) {
	t.Helper()
	lines, err := rundir.ReadProgress(dir)
	must(t, err)
	for _, l := range lines {
		if l.Eval == nil && l.Return != nil {
			all = append(all, float64(l.Step))
		}
	}
	return all
}

// A page fills while a run trains. The server is killed and another takes its place: no point is missing, none is there
// twice. Then the run is resumed by another process, from an earlier checkpoint.
func TestBrowserFollowsATraining(t *testing.T) {
	p := browse(t, 1280, 900)
	dir := filepath.Join(t.TempDir(), "run")
	s := &page{t: t}
	s.start(Options{Paths: []string{dir}})
	defer func() { s.stop() }()
	must(t, p.Go("http://"+s.addr+"/")) // before there is a run
	wait(t, p, "document.body.innerText.includes('Nothing has begun yet')")

	cfg := config.For("CartPole-v1")
	cfg.Name, cfg.PPO.Steps, cfg.Train.Envs, cfg.Train.LogEvery, cfg.Train.EvalEvery, cfg.Train.CheckpointEvery = "live",
		64, 4, 512, 4096, 4096
	cfg.Train.Steps, cfg.Eval.Validation = 100_000_000, 3
	train := func(resume bool) (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			// At most 25 lines a second on the fastest machine: a page keeps 600 points singly, and those are compared.
			log := func(atrain.Record, float64) { time.Sleep(40 * time.Millisecond) }
			_, err := run.Train(ctx, cfg,
				run.TrainOptions{RunDir: dir, Resume: resume, Workers: 1, Tags: "sb3", NoEval: true, Log: log})
			ended <- err
		}()
		return func() {
			cancel()
			if err := <-ended; !errors.Is(err, fault.ErrInterrupted) {
				t.Errorf("the training ends with %v", err)
			}
		}
	}
	stop := train(false)
	const points = "(document.querySelector('canvas[data-key=return_mean]')?.chart.curves[0]?.x.length || 0)"
	wait(t, p, points+" >= 5") // it has found the run and fills by itself
	before := eval[int](t, p, points)
	wait(t, p, fmt.Sprintf("%s > %d && document.querySelector('.live').dataset.state === 'on'", points, before+5))

	// Curves are fetched again while lines come: none is lost between the two.
	for range 5 {
		must(t,
			p.Eval("document.querySelector('canvas[data-key=return_mean]').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true })); new Promise((done) => setTimeout(done, 180))", nil))
	}

	s.stop()
	wait(t, p, "document.querySelector('.live').dataset.state === 'off'")
	away := eval[int](t, p, points)
	wanted := len(steps(t, dir)) + 5
	for end := time.Now().Add(soon); len(steps(t, dir)) < wanted; { // the training goes on without a page
		if time.Now().After(end) {
			t.Fatal("the training stands still")
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.start(Options{Paths: []string{dir}})
	wait(t, p, fmt.Sprintf("%s > %d && document.querySelector('.live').dataset.state === 'on'", points, max(away, wanted)))
	stop()
	same := func(when string) {
		t.Helper()
		want := steps(t, dir)
		wait(t, p, fmt.Sprintf("%s === %d", points, len(want)))
		if got := eval[[]float64](t, p,
			"document.querySelector('canvas[data-key=return_mean]').chart.curves[0].x"); !slices.Equal(got, want) {
			t.Errorf("%s the page has points at %v\nthe file at %v", when, got, want)
		}
	}
	same("after the server came back")

	// What was written after the last checkpoint goes.
	lines, err := rundir.ReadProgress(dir)
	must(t, err)
	f, err := os.OpenFile(filepath.Join(dir, rundir.ProgressFile), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	last := lines[len(lines)-1].Step
	for i := range 3 { // as a process that was killed before its next checkpoint leaves them
		_, err = fmt.Fprintf(f, `{"step":%d,"episodes":1,"updates":1,"return_mean":1,"length_mean":1,"timing":{"steps_per_s":1,"wall_s":1}}`+"\n", last+100_001+int64(2*i))
		must(t, err)
	}
	must(t, f.Close())
	same("before it is resumed")
	stop = train(true)
	wait(t, p,
		fmt.Sprintf(
			"document.querySelector('canvas[data-key=return_mean]').chart.curves[0].x.every((x) => x %% 256 === 0) && %s > %d",
			points, len(steps(t, dir))-3))
	stop()
	same("after it was resumed")
	if list := p.Elsewhere(s.addr); len(list) > 0 {
		t.Errorf("requests leave the machine: %v", list)
	}
}

const points600 = 600 // of a curve, as in app.js

// Two runs lie over each other, and runs are chosen by what differs in their configurations.
func TestBrowserComparesRuns(t *testing.T) {
	p := browse(t, 1280, 900)
	dir := t.TempDir()
	written(t, dir, "one", 300)
	written(t, dir, "three", 200)
	written(t, dir, "fifteen", 100)
	s := serve(t, Options{Paths: []string{dir}})
	open(t, p, s.URL+"/")
	wait(t, p,
		"[...document.querySelectorAll('canvas[data-key]')].every((c) => c.chart.curves.length === 3 && c.chart.curves.every((u) => u.x.length))")
	choose := `(v) => { const s = [...document.querySelectorAll('select')].find((s) => s.parentNode.textContent.startsWith('ppo.lr')); s.value = v; s.dispatchEvent(new Event('change')); }`
	if options := eval[[]string](t, p,
		"[...[...document.querySelectorAll('select')].find((s) => s.parentNode.textContent.startsWith('ppo.lr')).options].map((o) => o.value)"); fmt.Sprint(options) != "[ 0.003 0.005 0.007]" {
		t.Errorf("the choices of ppo.lr are %q", options)
	}
	must(t, p.Eval("("+choose+")('0.005')", nil))
	wait(t, p,
		"(document.querySelector('canvas[data-key=return_mean]')?.chart.curves || []).map((c) => c.name).join() === 'three'")
	// clear
	must(t,
		p.Eval("document.querySelector('button.sort').closest('main').querySelectorAll('.bars button')[0].click()", nil))
	wait(t, p, "(document.querySelector('canvas[data-key=return_mean]')?.chart.curves || []).length === 3")
	must(t, p.Eval("document.querySelectorAll('tbody input')[0].click()", nil))
	wait(t, p,
		"(document.querySelector('canvas[data-key=return_mean]')?.chart.curves || []).map((c) => c.name).join() === 'one,three' && document.querySelector('canvas[data-key=return_mean]').chart.curves[1].x.length === 200")
	must(t, p.Eval("new Promise((done) => setTimeout(done, 100))", nil))
	colours := eval[int](t, p, `(() => { const c = document.querySelector('canvas[data-key=return_mean]'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Map();
		for (let i = 0; i < d.length; i += 4) { const k = d[i] + ',' + d[i + 1] + ',' + d[i + 2]; seen.set(k, (seen.get(k) || 0) + 1); }
		return ['213,94,0', '0,158,115', '0,114,178'].filter((k) => (seen.get(k) || 0) > 100).length; })()`)
	if colours != 2 {
		t.Errorf("%d colours of curves are in the picture, want those of two runs", colours)
	}
	// The address says what is shown.
	at := eval[string](t, p, "location.href")
	open(t, p, at)
	wait(t, p,
		"(document.querySelector('canvas[data-key=return_mean]')?.chart.curves || []).map((c) => c.name).join() === 'one,three'")
	if list := p.Elsewhere(strings.TrimPrefix(s.URL, "http://")); len(list) > 0 {
		t.Errorf("requests leave the machine: %v", list)
	}
}

// A run of 100,000 lines is as much work for the page as one of 1,200: so many points are sent and drawn. Nearer, there
// are more of them.
func TestBrowserShowsLongRuns(t *testing.T) {
	p := browse(t, 1280, 900)
	dir := t.TempDir()
	path := written(t, dir, "long", 100_000)
	s := serve(t, Options{Paths: []string{path}})
	begun := time.Now()
	open(t, p, s.URL+"/")
	wait(t, p, "(document.querySelector('canvas[data-key=return_mean]')?.dataset.points || 0) > 0")
	t.Logf("100,000 lines are on the page after %v", time.Since(begun).Round(time.Millisecond))
	drawn := eval[[]int](t, p,
		"[...document.querySelectorAll('canvas[data-points]')].map((c) => Number(c.dataset.points))")
	for _, n := range drawn {
		if n > 2*points600 {
			t.Errorf("a figure draws %d points", n)
		}
	}
	if len(drawn) < 6 || slices.Max(drawn) != points600 {
		t.Errorf("figures draw %v points", drawn)
	}
	sizes := eval[[]int](t, p,
		"performance.getEntriesByType('resource').filter((r) => r.name.includes('/api/curves')).map((r) => r.decodedBodySize)")
	if len(sizes) != 1 || sizes[0] > 600_000 {
		t.Errorf("curves came as %v bytes, want one answer of at most 600 kB for %d kB of lines", sizes,
			fileSize(t, path)>>10)
	}
	if top := eval[float64](t, p,
		"Math.max(...document.querySelector('canvas[data-key=return_mean]').chart.curves[0].band.top)"); top != 1021 {
		t.Errorf("the largest point is %v: the spike of 1021 is lost", top)
	}
	// A key zooms in; the points come again, finer.
	const spread = "document.querySelector('canvas[data-key=return_mean]').chart.curves[0].x.reduce((m, x, i, a) => Math.max(m, i ? x - a[i - 1] : 0), 0)"
	wide := eval[float64](t, p, spread)
	for range 3 {
		must(t,
			p.Eval("document.querySelector('canvas[data-key=return_mean]').dispatchEvent(new KeyboardEvent('keydown', { key: '+', bubbles: true }))", nil))
	}
	wait(t, p, fmt.Sprintf("%s < %v", spread, wide/2))
	must(t,
		p.Eval("document.querySelector('canvas[data-key=return_mean]').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }))", nil))
	wait(t, p, fmt.Sprintf("%s === %v", spread, wide))
}

func fileSize(t *testing.T, dir string) int64 {
	t.Helper()
	i, err := os.Stat(filepath.Join(dir, rundir.ProgressFile))
	must(t, err)
	return i.Size()
}

// While lines come, rows of the table stay the elements that they are: otherwise a click that began before an update
// would be lost, and so would the place of whoever uses the keyboard. A run that is removed, and another one in its
// place, are noticed.
func TestBrowserKeepsRowsAndNoticesAnotherRun(t *testing.T) {
	p := browse(t, 1280, 900)
	dir := t.TempDir()
	one := written(t, dir, "one", 300)
	written(t, dir, "other", 200)
	s := serve(t, Options{Paths: []string{dir}})
	open(t, p, s.URL+"/")
	wait(t, p, "document.querySelectorAll('tbody tr').length === 2")
	must(t, p.Eval("window.row = document.querySelector('tbody tr'); row.querySelector('a').focus()", nil))
	const cell = "document.querySelectorAll('tbody tr td')[2].textContent"
	before := eval[string](t, p, cell)
	appendLines(t, one, 301, 303)
	wait(t, p, cell+" !== '"+before+"'")
	if !eval[bool](t, p, "row.isConnected && document.activeElement === row.querySelector('a')") {
		t.Error("an update of the list makes the row another element")
	}
	must(t, p.Eval("document.activeElement.click()", nil))
	const points = "(document.querySelector('canvas[data-key=return_mean]')?.chart.curves[0]?.x || [])"
	wait(t, p, ready+" && "+points+".length === 303")
	must(t, os.RemoveAll(one))
	wait(t, p, "document.body.innerText.includes('it may have been moved or removed')")
	written(t, dir, "one", 250)
	wait(t, p, points+".length === 250 && !document.body.innerText.includes('it may have been moved or removed')")
}

// The page of a log grows while another program writes it, for those who stand at its end; others are told.
func TestBrowserFollowsALog(t *testing.T) {
	p := browse(t, 1280, 900)
	path := filepath.Join(t.TempDir(), "live.jsonl")
	text := `{"log":"clustergym-decisions/1","policy":"mine","scores":"value","nodes":[2]}` + "\n"
	n, written := 0, 0
	more := func(rest string) { // a job that comes and starts, and a part of what follows
		n++
		text += fmt.Sprintf(`{"job":"j%d","gpus":1}
{"t_s":%[2]d,"event":"submit","job":"j%[1]d"}
{"t_s":%[2]d,"decision":%[1]d,"options":[{"do":"start","job":"j%[1]d","score":2},{"do":"wait","score":1}],"chosen":0,"waiting":1}
{"t_s":%[2]d,"event":"start","job":"j%[1]d","gpus":[0]}
{"t_s":%[3]d,"event":"finish","job":"j%[1]d"}
`, n, 10*n, 10*n+5)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		must(t, err)
		_, err = f.WriteString((text + rest)[written:])
		written = len(text + rest)
		must(t, errors.Join(err, f.Close()))
	}
	more(`{"job":"j2`)
	s := serve(t, Options{Paths: []string{path}})
	const at = "document.documentElement.dataset.decision"
	open(t, p, s.URL+"/")
	wait(t, p, at+" === '1'")
	more("")
	wait(t, p, at+" === '2' && document.querySelector('.counter, output').textContent.startsWith('2 of 2')")
	must(t, p.Key("ArrowLeft"))
	wait(t, p, at+" === '1'")
	more("")
	wait(t, p, "!document.querySelector('.bars button.main').hidden")
	if got := eval[string](t, p, at); got != "1" {
		t.Errorf("the reader is moved to decision %s", got)
	}
	must(t, p.Eval("document.querySelector('.bars button.main').click()", nil))
	wait(t, p, at+" === '3'")
	if got := eval[string](t, p, "document.querySelector('tr.agent th').textContent"); !strings.Contains(got, "j3") {
		t.Errorf("the agent chooses %q", got)
	}
}

// The page of a command with a queue says who works on what, how far, and who was lost.
func TestBrowserShowsAQueue(t *testing.T) {
	p := browse(t, 1280, 900)
	dir := t.TempDir()
	written(t, dir, "trial-0", 20)
	var q atomic.Pointer[workqueue.Status]
	q.Store(&workqueue.Status{
		Job: "search", Done: 3, Working: 2, Waiting: 5, Here: 1,
		Own: []workqueue.TaskStatus{{Name: "trial 0", For: 3 * time.Second, Try: 1}},
		Workers: []workqueue.WorkerStatus{{Name: "node7", Slots: 2, Done: 3,
			Tasks: []workqueue.TaskStatus{{Name: "trial 1", Done: 30, All: 40, For: 2 * time.Minute, Try: 2}}},
			{Name: "node8", Slots: 1, Silent: 5 * time.Second, Tasks: []workqueue.TaskStatus{}}},
		Lost: []workqueue.LostWorker{{Name: "node9", Why: "it went away", Ago: time.Minute, Tasks: []string{"trial 1"}}},
	})
	s := serve(t, Options{Paths: []string{dir}, Queue: q.Load})
	open(t, p, s.URL+"/")
	rows := func(label string) []string {
		return eval[[]string](t, p,
			"[...document.querySelectorAll('[aria-label=\""+label+
				"\"] tbody tr')].map((r) => [...r.children].map((c) => c.textContent.trim()).join('|'))")
	}
	if got, want := rows("Who works on what"),
		[]string{"this machine|1 in work|trial 0|–|3 s|1", "node7|1 of 2 slots, 3 done|trial 1|75 %|2 min|2",
			"node8|0 of 1 slot, 0 done silent for 5 s|–|||"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := rows("Workers that were lost"),
		[]string{"node9|it went away|trial 1|1 min"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	next := *q.Load()
	next.Done, next.Working, next.Own = 4, 1, next.Own[:0]
	q.Store(&next)
	wait(t, p,
		"document.querySelectorAll('[aria-label=\"Who works on what\"] tbody tr').length === 2 && document.querySelector('.tile dd').textContent.startsWith('4of 10')")
}

// What the page of a replay shows is what the log says: every stint, and at each decision who holds the GPUs, the
// agent's scores and what SJF would do. A log that is a file has the same page.
func TestBrowserReplaysDecisions(t *testing.T) {
	p := browse(t, 1280, 1000)
	dir := trainedRun(t, "ppo")
	s := serve(t, Options{Paths: []string{dir}})
	_, text, _ := get(t, s.URL+"/api/replay?id="+idOf(dir)+"&window=1")
	file := filepath.Join(t.TempDir(), "decisions.jsonl")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	other := serve(t, Options{Paths: []string{file}})

	type shown struct{ busy, waiting int }
	var decisions []*decisionlog.Decision
	var want []shown
	starts, differ := 0, 0
	held := map[string]int{}
	must(t, decisionlog.Read(strings.NewReader(text), func(l *decisionlog.Line) error {
		switch {
		case l.Event != nil && l.Event.Kind == "start":
			held[l.Event.Job] = len(l.Event.GPUs)
			starts++
		case l.Event != nil && l.Event.Kind != "submit":
			delete(held, l.Event.Job)
		case l.Decision != nil:
			busy := 0
			for _, n := range held {
				busy += n
			}
			decisions, want = append(decisions, l.Decision), append(want, shown{busy, l.Decision.Waiting})
			if l.Decision.Rival != nil && *l.Decision.Rival != l.Decision.Chosen {
				differ++
			}
		}
		return nil
	}))
	for _, url := range []string{s.URL + "/#/replay/" + idOf(dir) + "?window=2", other.URL + "/"} {
		open(t, p, url)
		wait(t, p, "document.documentElement.dataset.decision === '1'")
		must(t,
			p.Eval("document.querySelector('button[title*=\"whole log\"]').click(); new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))", nil))
		if n := eval[string](t, p, "document.querySelector('canvas[data-bars]').dataset.bars"); n != fmt.Sprint(starts) {
			t.Errorf("%s: %s bars are drawn, the log has %d starts", url, n, starts)
		}
		for i, d := range decisions[:min(12, len(decisions))] {
			if i > 0 {
				must(t, p.Key("ArrowRight"))
			}
			wait(t, p, fmt.Sprintf("document.documentElement.dataset.decision === '%d'", d.Number))
			wait(t, p, fmt.Sprintf("document.querySelector('canvas[data-busy]').dataset.busy === '%d'", want[i].busy))
			rows := eval[int](t, p, "document.querySelectorAll('table.options tbody tr').length")
			agent := eval[string](t, p, "document.querySelector('tr.agent th').textContent")
			said := eval[string](t, p, "document.querySelector('.said').textContent")
			c := d.Options[d.Chosen]
			if rows != len(d.Options) || !strings.Contains(agent, "agent") || !strings.Contains(agent, c.Job) ||
				!strings.Contains(said, "probability") {
				t.Errorf("decision %d: %d rows of %d, %q, %q", d.Number, rows, len(d.Options), agent, said)
			}
			if different := *d.Rival != d.Chosen; different !=
				strings.Contains(said, "SJF would "+
					map[bool]string{true: "wait", false: "start"}[d.Options[*d.Rival].Do == "wait"]) {
				t.Errorf("decision %d: the rival takes %d, the agent %d: %q", d.Number, *d.Rival, d.Chosen, said)
			}
		}
		if n := eval[int](t, p, "document.querySelectorAll('.jumps button').length"); n != min(12, differ) {
			t.Errorf("%d jumps, and %d decisions differ", n, differ)
		}
		if differ > 0 {
			must(t, p.Eval("document.querySelector('.jumps button').click()", nil))
			gaps := eval[[]float64](t, p,
				"[...document.querySelectorAll('table.options tr')].filter((r) => r.querySelector('.badge')).length ? [1] : [0]")
			if at := eval[string](t, p, "document.querySelector('.jumps [aria-pressed=true]').textContent"); gaps[0] != 1 ||
				at != "#"+eval[string](t, p, "document.documentElement.dataset.decision") {
				t.Errorf("a jump leads to %s", at)
			}
		}
		must(t, p.Key("Home"))
		wait(t, p, "document.documentElement.dataset.decision === '1'")
		must(t, p.Key("End"))
		wait(t, p, fmt.Sprintf("document.documentElement.dataset.decision === '%d'", len(decisions)))
		must(t, p.Key("ArrowLeft"))
		wait(t, p, fmt.Sprintf("document.documentElement.dataset.decision === '%d'", len(decisions)-1))
	}
	if list := p.Elsewhere(strings.TrimPrefix(s.URL, "http://"), strings.TrimPrefix(other.URL, "http://")); len(list) > 0 {
		t.Errorf("requests leave the machine: %v", list)
	}
}

// sweepAndExperiment makes a small sweep and a part of an experiment in dir.
func sweepAndExperiment(t *testing.T, dir string) (sweepDir, experimentDir string) {
	t.Helper()
	base := config.For("CartPole-v1")
	base.Name, base.PPO.Steps, base.Train.Envs, base.PPO.Minibatches = "base", 32, 2, 2
	base.Train.Steps, base.Train.EvalEvery, base.Train.CheckpointEvery, base.Train.LogEvery = 1024, 256, 512, 256
	base.Eval.Validation = 2
	c := sweep.Default()
	c.Trials, c.Space, c.Halving = 4, map[string]any{"ppo.lr": map[string]any{"min": 1e-4, "max": 1e-2, "log": true}},
		sweep.Halving{Rungs: 2, Keep: 2}
	sweepDir = filepath.Join(dir, "search")
	_, err := sweep.Run(t.Context(), c, base, sweep.Options{Dir: sweepDir, Workers: 1, Now: time.Now})
	must(t, err)
	experimentDir = filepath.Join(dir, "estimates")
	_, err = papers.Run(t.Context(), "estimates",
		study.Options{Dir: experimentDir, Plan: study.Plan{Quick: true, Workers: 1}, Only: "quality/generated/last-two"})
	must(t, err)
	return sweepDir, experimentDir
}

// Every page is readable in light and dark, by its contrasts, and on a phone, and what can be pressed has a name.
func TestBrowserPagesAreReadable(t *testing.T) {
	p := browse(t, 1280, 900)
	dir := t.TempDir()
	long := written(t, dir, "a-long-name-of-a-run-that-somebody-gave-it", 2000)
	written(t, dir, "b", 500)
	sweepDir, experimentDir := sweepAndExperiment(t, dir)
	replayed := trainedRun(t, "ddqn")
	s := serve(t, Options{Paths: []string{dir, replayed}})
	pages := map[string]string{
		"runs": "/", "run": "/#/run/" + idOf(long), "trained": "/#/run/" + idOf(replayed),
		"sweep":      "/#/sweep/" + idOf(sweepDir),
		"experiment": "/#/experiment/" + idOf(experimentDir), "replay": "/#/replay/" + idOf(replayed),
	}
	for name, path := range pages {
		must(t, p.Size(1280, 900, 1))
		open(t, p, s.URL+path)
		if nameless := eval[[]string](t, p,
			`[...document.querySelectorAll('button, a, input, select, canvas')].filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.title || e.labels?.length)).map((e) => e.outerHTML.slice(0, 120))`); len(nameless) > 0 {
			t.Errorf("%s: without a name: %q", name, nameless)
		}
		must(t, p.Size(390, 844, 1))
		must(t, p.Eval("new Promise((done) => setTimeout(done, 150))", nil))
		if wide := eval[int](t, p, "document.documentElement.scrollWidth"); wide > 390 {
			t.Errorf("%s: on a phone of 390 pixels the page is %d wide: %q", name, wide,
				eval[[]string](t, p,
					`[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > 391 && !e.closest('.wide *')).map((e) => e.tagName + '.' + e.className + ' ' + Math.round(e.getBoundingClientRect().width)).slice(0, 9)`))
		}
		if cut := eval[[]string](t, p,
			`[...document.querySelectorAll('table.options th, table.options td, .tile dd, .tile dt, button, label')].filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth).map((e) => e.textContent)`); len(cut) > 0 {
			t.Errorf("%s: on a phone these texts are cut: %q", name, cut)
		}
	}
	// Colours are those of the whole page.
	must(t, p.Size(1280, 900, 1))
	for _, scheme := range []string{"light", "dark"} {
		must(t, p.Scheme(scheme))
		open(t, p, s.URL+"/")
		b, err := p.Picture(false)
		must(t, err)
		if r := brightness(t, b); (r > 0.5) != (scheme == "light") {
			t.Errorf("the %s page has paper of brightness %v", scheme, r)
		}
		type contrast struct {
			Name  string
			Ratio float64
		}
		for _, c := range eval[[]contrast](t, p, contrasts) {
			if c.Ratio < 4.5 {
				t.Errorf("%s: %s has a contrast of %.2f, want 4.5", scheme, c.Name, c.Ratio)
			}
		}
	}
	// The switch is stronger than the system, and it is remembered.
	must(t, p.Size(1280, 900, 1))
	open(t, p, s.URL+"/")
	must(t, p.Eval("document.querySelector('#bar button').click()", nil))
	for range 2 {
		b, err := p.Picture(false)
		must(t, err)
		if brightness(t, b) < 0.5 {
			t.Error("the switch does not make a dark page light")
		}
		open(t, p, s.URL+"/")
	}
	if list := p.Elsewhere(strings.TrimPrefix(s.URL, "http://")); len(list) > 0 {
		t.Errorf("requests leave the machine: %v", list)
	}
}

// contrasts are the ratios of the colours of texts to their papers, as WCAG 2 defines them.
const contrasts = `(() => {
	const probe = document.createElement('canvas').getContext('2d'), style = getComputedStyle(document.documentElement);
	const light = (name) => {
		probe.fillStyle = style.getPropertyValue(name).trim();
		const hex = probe.fillStyle;
		const [r, g, b] = [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4)));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	return [['--ink', '--paper'], ['--soft', '--paper'], ['--soft', '--panel'], ['--accent', '--paper'], ['--good', '--paper'], ['--bad', '--paper'], ['--warn', '--paper'], ['--ink', '--tint'], ['--warn', '--tint']].map(([a, b]) => {
		const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
		return { Name: a + ' on ' + b, Ratio: (x + 0.05) / (y + 0.05) };
	});
})()`

// brightness returns that of a corner of a picture, from 0 to 1.
func brightness(t *testing.T, b []byte) float64 {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(b))
	must(t, err)
	r, g, bl, _ := img.At(img.Bounds().Min.X+3, img.Bounds().Max.Y-3).RGBA()
	return float64(r+g+bl) / 3 / 0xffff
}

// The pictures of docs/guides/dashboard.md, with -update: of a run that is trained for them.
func TestBrowserTakesPictures(t *testing.T) {
	if !*update {
		t.Skip("go test -run TestBrowserTakesPictures -update ./experiments/pages writes the pictures of docs/images")
	}
	p := browse(t, 1280, 860)
	dir := t.TempDir()
	for name, sets := range map[string][]string{"small-steps": {"ppo.lr=0.0003"}, "large-steps": {"ppo.lr=0.003"},
		"ddqn": {"agent=ddqn", "ddqn.learning_starts=2000", "ddqn.buffer=20000"}} {
		cfg := tiny(t,
			append([]string{"trace.synth.jobs=12000", "env.window=64", "env.warm=64", "env.reward=wait", "env.relative=auto",
				"ppo.steps=128", "ppo.minibatches=8", "ppo.epochs=4", "ppo.network.hidden=[64]",
				"train.steps=40960", "train.envs=8", "train.log_every=1024", "train.eval_every=4096", "train.checkpoint_every=4096",
				"eval.validation=16", "eval.windows=24"}, sets...)...)
		cfg.Name = name
		_, err := run.Train(t.Context(), cfg,
			run.TrainOptions{RunDir: filepath.Join(dir, "runs", name), Workers: 2, Tags: "sb3"})
		must(t, err)
	}
	s := serve(t, Options{Paths: []string{filepath.Join(dir, "runs")}})
	id := idOf(filepath.Join(dir, "runs", "large-steps"))
	open(t, p, s.URL+"/")
	wait(t, p,
		"[...document.querySelectorAll('canvas[data-key]')].every((c) => c.chart.curves.length === 3 && c.chart.curves.every((u) => u.x.length))")
	picture(t, p, "live-runs")
	open(t, p, s.URL+"/#/run/"+id)
	must(t,
		p.Eval("[...document.querySelectorAll('button')].find((b) => b.textContent.startsWith('Compare')).click()", nil))
	wait(t, p, "document.querySelector('figcaption')?.closest('main').innerText.includes('validation windows')")
	must(t, p.Eval("new Promise((done) => setTimeout(done, 300))", nil))
	picture(t, p, "live-run")
	open(t, p, s.URL+"/#/replay/"+id)
	must(t, p.Eval("(document.querySelector('.jumps button') || document.body).click()", nil))
	must(t, p.Eval("new Promise((done) => setTimeout(done, 300))", nil))
	picture(t, p, "live-replay")
	must(t, p.Scheme("dark"))
	must(t, p.Size(390, 780, 1))
	open(t, p, s.URL+"/#/run/"+id)
	must(t, p.Eval("new Promise((done) => setTimeout(done, 300))", nil))
	picture(t, p, "live-phone")
}
