package pages

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // the pages
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"clustergym/bridge/server"
	"clustergym/distributed/workqueue"
	"clustergym/experiments/papers"
	"clustergym/experiments/study"
	"clustergym/internal/door"
	"clustergym/internal/fault"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/lab/htmlpage"
	"clustergym/lab/rundir"
	"clustergym/lab/sweep"
	"clustergym/traces"
)

// Options says what a server shows, and to whom.
type Options struct {
	// Paths are folders of runs, of a sweep or of an experiment, folders of such, and logs of decisions. They need not
	// exist yet.
	Paths []string
	// Tokens, if there are any, let only those in who know one of role read or admin.
	Tokens []server.Token
	// Kernels selects a set of kernels before a checkpoint plays; nil = whatever is in use, for a process that trains
	// meanwhile.
	Kernels func(set string) error
	// Worker, if set, is what a worker does, for its page and its metrics.
	Worker func() *WorkerState
	// Queue, if set, is what goes on in the queue of tasks of this command; nil while there is none.
	Queue func() *workqueue.Status
	// Version is that of the program, for /metrics.
	Version string
	Now     func() time.Time // nil = time.Now
	// Places is how many connections there may be that are idle or show nothing, and as many that show a token; 0 = as
	// many as fit a process that does other work.
	Places int
	// Poll is how often files are looked at while a page waits for news; 0 = every 500 ms.
	Poll time.Duration
}

// WorkerState is what a worker does.
type WorkerState struct {
	Name  string   `json:"name"`
	URL   string   `json:"url"`
	Slots int      `json:"slots"`
	Tasks []string `json:"tasks"` // in work
	Done  uint64   `json:"done"`
	Fails uint64   `json:"failed"`
}

// Server serves pages. Its methods are safe for concurrent use.
type Server struct {
	opt    Options
	mux    *http.ServeMux
	player player

	found memo[listed]
	news  memo[announced]

	mu        sync.Mutex                        // guards the fields below
	runs      map[string]*runData               // by path
	standings map[string]*memo[*study.Progress] // of experiments, by path
}

// listed is what there is to show; whole is false if there is more.
type listed struct {
	entries []entry
	whole   bool
}

//go:embed assets/app.css
var style string

//go:embed assets/app.js
var app string

//go:embed assets/replay.js
var replayScript string

//go:embed assets/index.html
var index string

// New returns a server.
func New(opt Options) *Server {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Poll = cmp.Or(opt.Poll, 500*time.Millisecond)
	s := &Server{opt: opt, mux: http.NewServeMux(), player: player{kernels: opt.Kernels}, runs: map[string]*runData{},
		standings: map[string]*memo[*study.Progress]{}}
	program := "\"use strict\";\n(function () {\n" + htmlpage.Drawing() + replayScript + app + "})();\n"
	static := func(path, kind, text string) {
		sum := sha256.Sum256([]byte(text))
		tag := `"` + hex.EncodeToString(sum[:8]) + `"`
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind+"; charset=utf-8")
			w.Header().Set("ETag", tag)
			w.Header().Set("Cache-Control", "no-cache")
			if r.Header.Get("If-None-Match") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			_, _ = w.Write([]byte(text)) // a reader that is gone is no fault
		})
	}
	static("/{$}", "text/html", index)
	static("/app.css", "text/css", htmlpage.Style()+style)
	static("/app.js", "text/javascript", program)
	static("/signin.js", "text/javascript", signInScript)
	s.json("/api/list", s.list)
	s.json("/api/run", s.of(aRun, func(e entry) (any, error) { return s.data(e.path).detail(e, opt.Now()), nil }))
	s.json("/api/curves", s.curves)
	s.json("/api/sweep", s.of(aSweep, s.sweep))
	s.json("/api/experiment", s.of(experiment, s.experiment))
	s.json("/api/worker", func(*http.Request) (any, error) {
		if opt.Worker == nil {
			return nil, fault.Mistakef("this is no worker")
		}
		return opt.Worker(), nil
	})
	s.json("/api/queue", s.queue)
	s.mux.HandleFunc("GET /api/standings", s.raw("application/json", s.compare))
	s.mux.HandleFunc("GET /api/replay", s.replay)
	s.mux.HandleFunc("GET /events", s.events)
	s.mux.Handle("GET /metrics", s.metrics())
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "+
			"form-action 'self'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		// It could not read the answer, but let checkpoints play.
		http.Error(w, "pages of other sites get nothing here", http.StatusForbidden)
		return
	}
	if len(s.opt.Tokens) == 0 {
		// Without tokens only this machine reaches the address: a page elsewhere that has its own name point here must not
		// read.
		if !local(r.Host) {
			http.Error(w, "this server answers to localhost and to addresses of this machine alone", http.StatusForbidden)
			return
		}
	} else if !s.admit(w, r) {
		return
	}
	door.PlaceOf(r).Vouch()
	s.mux.ServeHTTP(w, r)
}

// local reports whether a Host header is an IP address or localhost. Names of others that point to this machine are
// not.
func local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil
}

// Serve serves on l until ctx ends, and closes l. Connections that are idle, or that show nothing, make room when there
// are many: an agent that trains in this process needs descriptors too.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	d := door.New(door.Config{Places: s.opt.Places})
	return d.Serve(ctx, &http.Server{Handler: s, BaseContext: func(net.Listener) context.Context { return ctx }}, l)
}

// entries returns what there is to show, at most a second old.
func (s *Server) entries() ([]entry, bool) {
	l, _ := s.found.get(time.Second, func() (listed, error) { // it has no error
		var l listed
		l.entries, l.whole = find(s.opt.Paths)
		s.keep(l.entries)
		return l, nil
	})
	return l.entries, l.whole
}

// keep drops what was read of entries that are gone, and curves that nobody looks at.
func (s *Server) keep(all []entry) {
	s.player.rest()
	here := map[string]bool{}
	for _, e := range all {
		here[e.path] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, r := range s.runs {
		if !here[path] {
			delete(s.runs, path)
			continue
		}
		r.rest(s.opt.Now())
	}
	for path := range s.standings {
		if !here[path] {
			delete(s.standings, path)
		}
	}
}

func (s *Server) data(path string) *runData {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[path]
	if r == nil {
		r = newRunData(path)
		s.runs[path] = r
	}
	return r
}

// standing returns how an experiment stands, at most two seconds old: it reads a file for each cell.
func (s *Server) standing(path string) (*study.Progress, error) {
	s.mu.Lock()
	m := s.standings[path]
	if m == nil {
		m = &memo[*study.Progress]{}
		s.standings[path] = m
	}
	s.mu.Unlock()
	return m.get(2*time.Second, func() (*study.Progress, error) { return papers.ProgressOf(path) })
}

// missing is an entry that is not there.
type missing struct{ error }

// entry returns the entry that a request names, which must be of one of kinds.
func (s *Server) entry(id string, kinds ...kind) (entry, error) {
	all, _ := s.entries()
	i := slices.IndexFunc(all, func(e entry) bool { return e.ID == id && slices.Contains(kinds, e.Kind) })
	if i < 0 {
		return entry{}, missing{fmt.Errorf("there is no %s %q here; it may have been moved or removed", kinds[0], id)}
	}
	return all[i], all[i].away
}

// of returns what f returns for the entry of a kind that a request names.
func (s *Server) of(k kind, f func(e entry) (any, error)) func(r *http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		e, err := s.entry(r.URL.Query().Get("id"), k)
		if err != nil {
			return nil, err
		}
		return f(e)
	}
}

// json serves what f returns.
func (s *Server) json(path string, f func(r *http.Request) (any, error)) {
	s.mux.HandleFunc("GET "+path, s.raw("application/json", func(r *http.Request) ([]byte, error) {
		v, err := f(r)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	}))
}

// raw serves the bytes that f returns. Errors are texts of one sentence.
func (s *Server) raw(kind string, f func(r *http.Request) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		b, err := f(r)
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(b)
	}
}

func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	var gone missing
	var input *fault.Mistake
	switch {
	case errors.As(err, &gone):
		code = http.StatusNotFound
	case errors.As(err, &input):
		code = http.StatusUnprocessableEntity
	}
	http.Error(w, err.Error(), code)
}

// list is /api/list: a summary of everything.
func (s *Server) list(r *http.Request) (any, error) {
	return s.listed(r.URL.Query().Get("params") != ""), nil
}

type listing struct {
	Title   string    `json:"title"`
	Paths   []string  `json:"paths"`
	Entries []summary `json:"entries"`
	Whole   bool      `json:"whole"`
	Worker  bool      `json:"worker"`
	Queue   bool      `json:"queue"`
	Now     int64     `json:"now_ms"`
}

func (s *Server) listed(params bool) listing {
	all, whole := s.entries()
	out := listing{Paths: s.opt.Paths, Whole: whole, Entries: []summary{}, Worker: s.opt.Worker != nil,
		Queue: s.status() != nil, Now: s.opt.Now().UnixMilli()}
	out.Title = strings.ToValidUTF8(strings.Join(rootNames(s.opt.Paths), ", "), "\uFFFD")
	if len(all) == 1 && all[0].Kind == aRun && all[0].away == nil {
		s.data(all[0].path).expect(s.opt.Now())
	}
	for _, e := range all {
		shown := summary{entry: e}
		if e.Kind == aRun {
			shown = s.data(e.path).summarise(e, s.opt.Now(), params)
		} else if e.away != nil {
			shown.Fault = e.away.Error()
		}
		out.Entries = append(out.Entries, shown)
	}
	return out
}

// status returns what goes on in the queue, nil if there is none.
func (s *Server) status() *workqueue.Status {
	if s.opt.Queue == nil {
		return nil
	}
	return s.opt.Queue()
}

// queue is /api/queue.
func (s *Server) queue(*http.Request) (any, error) {
	st := s.status()
	if st == nil {
		return nil, fault.Mistakef("this command has no queue of tasks")
	}
	return st, nil
}

// The bounds of a request for curves.
const (
	leastPoints, usualPoints, mostPoints = 16, 600, 4000
	mostRuns                             = 64 // of one page
)

// curves is /api/curves?id=ID&id=…&key=KEY&…&n=POINTS&from=STEP&to=STEP.
func (s *Server) curves(r *http.Request) (any, error) {
	q := r.URL.Query()
	var bad error
	number := func(key string, otherwise float64) float64 {
		if q.Get(key) == "" {
			return otherwise
		}
		v, err := strconv.ParseFloat(q.Get(key), 64)
		if err != nil || math.IsNaN(v) {
			bad = fault.Mistakef("%s: got %q, want a number", key, q.Get(key))
		}
		return v
	}
	from, to, n := number("from", math.Inf(-1)), number("to", math.Inf(1)), number("n", usualPoints)
	if bad != nil {
		return nil, bad
	}
	ids := q["id"]
	if len(ids) == 0 || len(ids) > mostRuns {
		return nil, fault.Mistakef("id: got %d runs, want 1 to %d", len(ids), mostRuns)
	}
	out := []curves{}
	for _, id := range ids {
		e, err := s.entry(id, aRun)
		if err != nil {
			return nil, err
		}
		c, err := s.data(e.path).curves(id, s.opt.Now(), q["key"], from, to, int(min(mostPoints, max(leastPoints, n))))
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// partOf returns the part of a workload that a request names: validation unless it says test.
func partOf(q url.Values) (traces.Part, error) {
	switch p := q.Get("part"); p {
	case "", "validation":
		return traces.Validation, nil
	case "test":
		return traces.Test, nil
	default:
		return 0, fault.Mistakef("part: got %q, want validation or test", p)
	}
}

// replay is /api/replay?id=RUN&window=N&part=PART or ?id=LOG.
func (s *Server) replay(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.raw("application/jsonl", func(r *http.Request) ([]byte, error) {
		e, err := s.entry(q.Get("id"), aRun, aLog)
		if err != nil {
			return nil, err
		}
		if e.Kind == aLog && isSteer(e.path) {
			b, n, err := storyOf(e.path)
			w.Header().Set("Clustergym-Lines", strconv.Itoa(n))
			return b, err
		}
		if e.Kind == aLog {
			return logOf(e.path)
		}
		part, err := partOf(q)
		if err != nil {
			return nil, err
		}
		window := 0
		if t := q.Get("window"); t != "" {
			if window, err = strconv.Atoi(t); err != nil || window < 0 {
				return nil, fault.Mistakef("window: got %q, want a number from 0 on", t)
			}
		}
		log, err := s.player.replay(r.Context(), e.path, part, window)
		w.Header().Set("Clustergym-Windows", strconv.Itoa(log.windows))
		return log.bytes, err
	})(w, r)
}

// compare is /api/standings?id=RUN: the checkpoint beside rules on validation windows.
func (s *Server) compare(r *http.Request) ([]byte, error) {
	e, err := s.entry(r.URL.Query().Get("id"), aRun)
	if err != nil {
		return nil, err
	}
	type policy struct {
		Name  string  `json:"name"`
		Value float64 `json:"value"`
	}
	return s.player.standings(r.Context(), e.path, func(st *arena.ValidationScores) ([]byte, error) {
		out := struct {
			Metric   string             `json:"metric"`
			Title    string             `json:"title"`
			Windows  int                `json:"windows"`
			Lower    bool               `json:"lower"`
			Policies []policy           `json:"policies"`
			Paired   []statistic.Paired `json:"paired"`
		}{st.Metric, st.Title, st.Windows, st.Lower, nil, st.Paired}
		for _, p := range st.Policies {
			out.Policies = append(out.Policies, policy{p.Name, p.Validation.At(0).Value})
		}
		return json.Marshal(out)
	})
}

// sweepPage is what the page of a sweep shows.
type sweepPage struct {
	entry
	Trials int               `json:"trials"`
	All    int               `json:"all"` // results of trials on rungs, at the end
	Rungs  []int64           `json:"rungs"`
	Seeds  int               `json:"seeds"`
	Space  []string          `json:"space"`
	Higher bool              `json:"higher"`
	Metric string            `json:"metric"`
	Lines  []sweep.TrialLine `json:"lines"`
	Runs   map[string]string `json:"runs"` // ids of the trials' runs, by TRIAL or TRIAL/SEED
	Base   [][2]string       `json:"base"`
}

func (s *Server) sweep(e entry) (any, error) {
	cfg, base, err := sweep.Read(e.path)
	if err != nil {
		return nil, err
	}
	for _, set := range cfg.Set {
		if err := base.Set(set); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
	}
	out := sweepPage{entry: e, Trials: cfg.Trials, All: cfg.Results(), Seeds: cfg.Seeds,
		Rungs: cfg.Budgets(base.Train.Steps), Runs: map[string]string{}, Lines: []sweep.TrialLine{}}
	out.Space = slices.Sorted(maps.Keys(cfg.Space))
	if lines, err := sweep.Lines(e.path); err != nil {
		return nil, err
	} else if len(lines) > 0 {
		out.Lines = lines
	}
	for _, l := range out.Lines {
		if l.Metric != "" {
			out.Metric, out.Higher = l.Metric, rundir.HigherIsBetter(l.Metric)
		}
	}
	all, _ := s.entries()
	for _, o := range all {
		if rel, err := filepath.Rel(e.path, o.path); err == nil && o.Kind == aRun && strings.HasPrefix(rel, "trial-") {
			name := strings.TrimPrefix(filepath.ToSlash(rel), "trial-")
			trial, _, _ := strings.Cut(name, "/")
			if _, ok := out.Runs[trial]; !ok {
				out.Runs[trial] = o.ID
			}
		}
	}
	out.Base, err = paramsOf(&base)
	return out, err
}

func (s *Server) experiment(e entry) (any, error) {
	st, err := s.standing(e.path)
	if err != nil {
		return nil, err
	}
	type cell struct {
		Key  string  `json:"key"`
		Done bool    `json:"done"`
		Wall float64 `json:"wall_s,omitempty"`
	}
	type sheet struct {
		Title  string     `json:"title"`
		Header []string   `json:"header"`
		Rows   [][]string `json:"rows"`
		Left   int        `json:"left"`
		Text   string     `json:"text"`
	}
	out := struct {
		entry
		Title  string      `json:"title"`
		Facts  [][2]string `json:"facts"`
		Cells  []cell      `json:"cells"`
		Sheets []sheet     `json:"sheets"`
	}{entry: e, Title: st.Title, Facts: st.Facts, Sheets: []sheet{}}
	for _, c := range st.Cells {
		out.Cells = append(out.Cells, cell(c))
	}
	for _, t := range st.Sheets {
		out.Sheets = append(out.Sheets, sheet{t.Title, t.Header, t.Lines, t.Left, strings.Join(t.Notes, " ")})
	}
	return out, nil
}
