package pages

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/bridge/server"
	"clustergym/lab/rundir"
	"clustergym/ops/steer"
)

// said are the events of a stream, as "ID EVENT DATA".
func said(t *testing.T, url, last string, n int) []string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close() //nolint:errcheck // only read
	if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s", url, a.Status)
	}
	var out []string
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 1<<20)
	one := map[string]string{}
	for len(out) < n && lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		if lines.Text() == "" {
			if one["event"] != "" {
				out = append(out, one["id"]+" "+one["event"]+" "+one["data"])
			}
			one = map[string]string{}
			continue
		}
		one[key] = value
	}
	return out
}

// A stream of two runs goes on after the lines that its receiver names, from any process.
func TestStreamsGoOnAfterTheLastLine(t *testing.T) {
	dir := t.TempDir()
	a, b := written(t, dir, "a", 3), written(t, dir, "bb", 2)
	url := func() string {
		return serve(t, Options{Paths: []string{dir}}).URL + "/events?run=" + idOf(a) + "&run=" + idOf(b)
	}
	step := regexp.MustCompile(`^(\S+) (\w+) {"run":(\d),"n":(\d+),"line":{"step":(\d+),`)
	check := func(got []string, want ...string) {
		t.Helper()
		var short []string
		for _, s := range got {
			if m := step.FindStringSubmatch(s); m != nil {
				s = fmt.Sprintf("%s run %s line %s step %s", m[1], m[3], m[4], m[5])
			}
			short = append(short, s)
		}
		if fmt.Sprint(short) != fmt.Sprint(want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(short, "\n"), strings.Join(want, "\n"))
		}
	}
	first := url()
	check(said(t, first, "", 5), "1,0 run 0 line 1 step 10", "2,0 run 0 line 2 step 20", "3,0 run 0 line 3 step 30",
		"3,1 run 1 line 1 step 10", "3,2 run 1 line 2 step 20")
	appendLines(t, a, 4, 4)
	check(said(t, first+"&after=3,1", "", 2), "4,1 run 0 line 4 step 40", "4,2 run 1 line 2 step 20")
	// Last-Event-ID is newer than what a page began with.
	check(said(t, first+"&after=0,0", "3,2", 1), "4,2 run 0 line 4 step 40")
	check(said(t, url(), "3,2", 1), "4,2 run 0 line 4 step 40") // another process
	// A run that is resumed has cut its file.
	if err := os.Remove(filepath.Join(a, rundir.ProgressFile)); err != nil {
		t.Fatal(err)
	}
	appendLines(t, a, 1, 2)
	check(said(t, url(), "4,2", 2), `0,2 again {"run":0}`)
	for _, bad := range []string{"3", "x,1", "-1,0"} {
		if code, _, _ := get(t, first+"&after="+bad); code != http.StatusUnprocessableEntity {
			t.Errorf("after=%s: %d", bad, code)
		}
	}
}

func TestCurvesOfLongRunsAreShortAndKeepEverySpike(t *testing.T) {
	dir := t.TempDir()
	path := written(t, dir, "long", 20_000)
	s := serve(t, Options{Paths: []string{path}})
	ask := func(query string) curves {
		t.Helper()
		code, body, _ := get(t, s.URL+"/api/curves?id="+idOf(path)+query)
		var out []curves
		if code != http.StatusOK || json.Unmarshal([]byte(body), &out) != nil || len(out) != 1 {
			t.Fatalf("%d %.200s", code, body)
		}
		return out[0]
	}
	whole := ask("&key=return_mean&n=500")
	c := whole.Keys["return_mean"]
	if len(c.X) != 500 || len(c.Low) != 500 || c.All != 20_000 || whole.Lines != 20_020 {
		t.Fatalf("%d points of %d, %d lines", len(c.X), c.All, whole.Lines)
	}
	top := math.Inf(-1)
	for _, v := range c.Top {
		top = max(top, v)
	}
	if top != 1021 {
		t.Errorf("the largest value is %v, want that of the spike, 1021", top)
	}
	near := ask("&key=return_mean&n=500&from=43000&to=43400").Keys["return_mean"]
	if len(near.X) != 43 || near.Low != nil || near.X[0] != 42990 || near.X[42] != 43410 {
		t.Errorf("nearer: %v", near.X)
	}
	if n := len(ask("&n=1").Keys); n != 11 {
		t.Errorf("%d keys", n)
	}
}

// The scanner finds what encoding/json finds.
func TestScannerAgreesWithJSON(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var tree func(depth int) map[string]any
		tree = func(depth int) map[string]any {
			m := map[string]any{}
			for _, k := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z_/ \\"é]{1,6}`), 0, 4,
				func(s string) string { return s }).Draw(r, "keys") {
				switch rapid.IntRange(0, 5).Draw(r, "kind") {
				case 0:
					m[k] = rapid.Float64Range(-1e300, 1e300).Draw(r, "number")
				case 1:
					m[k] = rapid.String().Draw(r, "text")
				case 2:
					m[k] = rapid.Bool().Draw(r, "bool")
				case 3:
					m[k] = []any{1, "]", map[string]any{"a": 1}, nil}
				case 4:
					m[k] = nil
				case 5:
					if depth < 3 {
						m[k] = tree(depth + 1)
					}
				}
			}
			return m
		}
		b, err := json.Marshal(tree(0))
		if err != nil {
			r.Fatal(err)
		}
		var back map[string]any
		if err := json.Unmarshal(b, &back); err != nil {
			r.Fatal(err)
		}
		want, got := map[string]float64{}, map[string]float64{}
		var walk func(prefix string, m map[string]any)
		walk = func(prefix string, m map[string]any) {
			for k, v := range m {
				q, _ := json.Marshal(k)
				name := prefix + string(q[1:len(q)-1])
				switch v := v.(type) {
				case float64:
					want[name] = v
				case map[string]any:
					walk(name+"/", v)
				}
			}
		}
		walk("", back)
		ok := numbers(b, func(key []byte, v float64) { got[string(key)] = v })
		if !ok || fmt.Sprint(got) != fmt.Sprint(want) {
			r.Fatalf("%s: ok %v\ngot  %v\nwant %v", b, ok, got, want)
		}
	})
}

func FuzzNumbers(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":-2e3},"d":[1,{"x":2}],"e":"\"","f":null,"g":tru`))
	f.Fuzz(func(_ *testing.T, b []byte) { numbers(b, func([]byte, float64) {}) }) // it must not panic
}

func TestOnlyThoseWhoMayLookGetIn(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, "a", 2)
	open := serve(t, Options{Paths: []string{dir}})
	code, _, h := get(t, open.URL+"/")
	if csp := h.Get("Content-Security-Policy"); code != 200 || !strings.Contains(csp, "default-src 'none'") ||
		strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
		t.Errorf("%d, policy %q", code, csp)
	}
	if code, _, _ := get(t, open.URL+"/api/list", "Host", "evil.example:6006"); code != http.StatusForbidden {
		t.Errorf("a page that names itself like this machine gets %d", code)
	}
	if code, _, _ := get(t, open.URL+"/api/list", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"); code !=
		http.StatusForbidden {
		t.Errorf("a page of another site gets %d", code)
	}
	const read, play = "0123456789abcdef-read", "0123456789abcdef-play"
	tokens := []server.Token{{Role: server.RoleRead, Secret: read}, {Role: server.RoleEnv, Secret: play}}
	shut := serve(t, Options{Paths: []string{dir}, Tokens: tokens})
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(shut.URL, "http://"))
	for _, c := range []struct {
		path string
		head []string
		want int
	}{
		{"/", nil, 401},
		{"/events?list=1", nil, 401},
		{"/metrics", []string{"Authorization", "Bearer " + play}, 401},
		{"/metrics", []string{"Authorization", "Bearer " + read}, 200},
		{"/?token=" + read, nil, 303},
		{"/?token=wrong", nil, 401},
		{"/api/list",
			[]string{"Cookie", New(Options{Tokens: tokens}).cookieName(&http.Request{Host: "127.0.0.1:" + port}) + "=" +
				cookieOf(read, time.Now().Add(time.Hour))}, 200},
		{"/healthz", nil, 200},
	} {
		if code, _, _ := get(t, shut.URL+c.path, c.head...); code != c.want {
			t.Errorf("%s %v: %d, want %d", c.path, c.head, code, c.want)
		}
	}
}

func TestPathsWithoutAnythingAreRefusedInOneSentence(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.jsonl")
	if err := os.WriteFile(text, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "no"): "no such file or directory; want the folder of a run",
		dir:                      "holds no run (config.yaml), sweep or experiment",
		text:                     "line 1: it is no log of decisions",
	} {
		if err := Check([]string{path}); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	run := written(t, dir, "a", 2)
	if err := Check([]string{run, dir}); err != nil {
		t.Error(err)
	}
	s := serve(t, Options{Paths: []string{dir}})
	for path, want := range map[string]string{
		"/api/run?id=x":                        "there is no run \"x\" here",
		"/api/replay?id=" + idOf(run):          "has no checkpoint yet",
		"/api/standings?id=" + idOf(run):       "has no checkpoint yet",
		"/api/curves?id=" + idOf(run) + "&n=x": `n: got "x", want a number`,
		"/api/worker":                          "this is no worker",
	} {
		if code, body, _ := get(t, s.URL+path); code == 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %q, want %q", path, code, body, want)
		}
	}
}

// The dashboards in docs/grafana ask only for metrics that /metrics has, and /metrics has what a scrape of Prometheus
// reads.
func TestDashboardsAskForWhatThereIs(t *testing.T) {
	dir := trainedRun(t, "ppo")
	s := serve(t, Options{Paths: []string{dir}, Worker: func() *WorkerState { return &WorkerState{Name: "w"} }})
	_, text, _ := get(t, s.URL+"/metrics")
	have := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)`).FindAllStringSubmatch(text, -1) {
		have[m[1]] = true
	}
	for _, want := range []string{`clustergym_run_step{agent="ppo",env="JobSelect-v1",run="tiny-ppo"} 256`,
		`state="done"} 1`, `name="policy_loss"`, "clustergym_run_validation_best{"} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	for _, d := range descs { // those of sweeps and experiments, which are not in this folder
		have[regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())[1]] = true
	}
	bridge, err := os.ReadFile("../bridge/server/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?:gauge|counter)\("([a-z_]+)"|"clustergym_([a-z_]+)"`).FindAllStringSubmatch(string(bridge), -1) {
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			have["clustergym_"+m[1]+m[2]+suffix] = true
		}
	}
	steering := httptest.NewRecorder()
	new(steer.Metrics).ServeHTTP(steering, nil)
	var told []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)`).FindAllStringSubmatch(steering.Body.String(), -1) {
		have[m[1]], told = true, append(told, m[1])
	}
	files, err := filepath.Glob("../docs/grafana/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("dashboards %v, error %v", files, err)
	}
	asked := map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
			Templating struct {
				List []struct {
					Query any
				}
			}
		}
		if err := json.Unmarshal(b, &board); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var exprs []string
		for _, p := range board.Panels {
			if len(p.Targets) == 0 {
				t.Errorf("%s: panel %q asks for nothing", file, p.Title)
			}
			for _, x := range p.Targets {
				exprs = append(exprs, x.Expr)
			}
		}
		for _, v := range board.Templating.List {
			if m, ok := v.Query.(map[string]any); ok {
				exprs = append(exprs, fmt.Sprint(m["query"]))
			}
		}
		for _, x := range exprs {
			for _, name := range regexp.MustCompile(`\b(?:clustergym|process|go)_[a-z0-9_]+`).FindAllString(x, -1) {
				asked[name] = true
				if !have[name] {
					t.Errorf("%s asks for %s, which /metrics does not have", filepath.Base(file), name)
				}
			}
		}
	}
	for _, name := range told {
		if !asked[name] {
			t.Errorf("no dashboard shows %s", name)
		}
	}
	for _, d := range descs {
		if name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())[1]; !asked[name] &&
			name != "clustergym_run_lines_total" && name != "clustergym_run_wall_seconds" {
			t.Errorf("no dashboard shows %s", name)
		}
	}
}
