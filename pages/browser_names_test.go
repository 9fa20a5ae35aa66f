package pages

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/server"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
)

// A figure does not stretch values that hardly change over its height; other values fill it.
func TestBrowserDoesNotEnlargeNoise(t *testing.T) {
	p := browse(t, 1280, 900)
	for name, c := range map[string]struct {
		value       func(i int) float64
		least, most float64 // what the axis spans
	}{
		"noise":    {func(i int) float64 { return 4000 + float64(i%7)/10 }, 200, 240},
		"constant": {func(int) float64 { return -0.5 }, 0.025, 0.03},
		"zero":     {func(int) float64 { return 0 }, 0.05, 2},
		"growth":   {func(i int) float64 { return float64(i) }, 99, 115},
	} {
		dir := written(t, t.TempDir(), "run", 100)
		var b strings.Builder
		for i := 1; i <= 100; i++ {
			fmt.Fprintf(&b,
				`{"step":%d,"episodes":%d,"updates":%d,"return_mean":%g,"length_mean":1,"train":{},"timing":{"steps_per_s":1,"wall_s":1}}`+"\n", 10*i, i, i, c.value(i))
		}
		must(t, os.WriteFile(filepath.Join(dir, rundir.ProgressFile), []byte(b.String()), 0o600))
		s := serve(t, Options{Paths: []string{dir}})
		open(t, p, s.URL+"/")
		const chart = "document.querySelector('canvas[data-key=return_mean]').chart"
		wait(t, p, chart+".curves[0].x.length === 100 && !!"+chart+".scale")
		span := eval[float64](t, p, chart+".scale.top - "+chart+".scale.bottom")
		if span < c.least || span > c.most {
			t.Errorf("%s: the axis spans %g, want %g to %g", name, span, c.least, c.most)
		}
		if in := eval[bool](t, p, chart+".curves[0].y.every((v) => v >= "+chart+".scale.bottom && v <= "+chart+
			".scale.top)"); !in {
			t.Errorf("%s: a value lies outside", name)
		}
	}
}

// An agent whose best checkpoint is that of step 0 has learned by imitation, or not at all: its pages say which.
func TestBrowserNamesAgentsOfStep0(t *testing.T) {
	p := browse(t, 1280, 900)
	for teacher, want := range map[string]string{"sjf@slots": "after imitating sjf@slots", "": "before its first step"} {
		dir := filepath.Join(t.TempDir(), "mine")
		must(t, os.MkdirAll(filepath.Join(dir, "eval"), 0o755))
		cfg := config.For("JobSelect-v1")
		cfg.Train.Imitate = teacher
		must(t, rundir.WriteConfig(dir, &cfg))
		must(t, os.WriteFile(filepath.Join(dir, rundir.ProgressFile), []byte(`{"step":0,"eval":{"windows":2,"jct_s":100,"best":true}}
{"step":100,"eval":{"windows":2,"jct_s":200,"best":false}}
`), 0o600))
		must(t, rundir.WriteBest(dir, rundir.BestCheckpoint{Step: 0, Metric: rundir.BestMetric, Value: 100}))
		s := serve(t, Options{Paths: []string{dir}})
		open(t, p, s.URL+"/")
		if got := eval[string](t, p, "[...document.querySelectorAll('.tile')].pop().textContent"); !strings.Contains(got,
			want) {
			t.Errorf("%q: the best validation is that of %q, want %s", teacher, got, want)
		}
	}
}

// A browser without a token sees a form, and after it the page that the address names; the token is in no address.
func TestBrowserShowsATokenInAForm(t *testing.T) {
	p := browse(t, 1280, 900)
	dir := t.TempDir()
	run := written(t, dir, "one", 3)
	written(t, dir, "two", 3)
	opt := Options{Paths: []string{dir}, Tokens: []server.Token{{Role: server.RoleRead, Secret: aToken}}}
	first, second := &page{t: t}, &page{t: t}
	first.start(opt)
	defer first.stop()
	second.start(Options{Paths: []string{run}, Tokens: []server.Token{{Role: server.RoleRead, Secret: otherToken}}})
	defer second.stop()
	enter := func(addr, token string) {
		must(t, p.Go("about:blank"))
		must(t, p.Go("http://"+addr+"/#/run/"+idOf(run)))
		wait(t, p, "!!document.getElementById('signin')")
		must(t,
			p.Eval(fmt.Sprintf("document.getElementById('token').value = %q; document.querySelector('#signin button').click()",
				token), nil))
	}
	enter(first.addr, "wrong")
	wait(t, p, "document.querySelector('.why')?.textContent.startsWith('This is no token')")
	enter(first.addr, aToken)
	wait(t, p, ready+" && document.querySelector('h1').textContent.startsWith('one')")
	if at := eval[string](t, p, "location.href"); strings.Contains(at, aToken) ||
		!strings.HasSuffix(at, "/#/run/"+idOf(run)) {
		t.Errorf("the address is %s", at)
	}
	if got := eval[string](t, p, "document.cookie"); got != "" {
		t.Errorf("scripts see the cookie %q", got)
	}
	// Another server of this machine takes nothing away.
	enter(second.addr, otherToken)
	wait(t, p, ready)
	must(t, p.Go("http://"+first.addr+"/"))
	wait(t, p, ready+" && document.querySelectorAll('tbody tr').length === 2")
	// An address with a token loses it.
	must(t, p.Go("http://"+first.addr+"/?token="+aToken))
	wait(t, p, ready)
	if at := eval[string](t, p, "location.href"); strings.Contains(at, "token") {
		t.Errorf("the address is %s", at)
	}
}

// The page that the address names comes after the form, also if the form's script arrives late.
func TestBrowserFormWaitsForItsScript(t *testing.T) {
	p := browse(t, 1280, 900)
	dir := t.TempDir()
	run := written(t, dir, "one", 3)
	written(t, dir, "two", 3)
	pages := serve(t,
		Options{Paths: []string{dir}, Tokens: []server.Token{{Role: server.RoleRead, Secret: aToken}}}).Config.Handler
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/signin.js" {
			time.Sleep(time.Second)
		}
		pages.ServeHTTP(w, r)
	}))
	defer slow.Close()
	defer slow.CloseClientConnections()
	must(t, p.Go(slow.URL+"/#/run/"+idOf(run)))
	wait(t, p, "!!document.getElementById('signin')")
	must(t,
		p.Eval(fmt.Sprintf("document.getElementById('token').value = %q; document.querySelector('#signin button').click()",
			aToken), nil))
	wait(t, p, ready+" && document.querySelector('h1').textContent.startsWith('one')")
}
