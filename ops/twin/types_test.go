package twin

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/live/livetest"
	"clustergym/traces"
)

// mixed is a cluster of nodes of these types, eight GPUs each, on which jobs of eight GPUs come that ask for types.
func mixed(types []string, asks ...[]string) *livetest.Cluster {
	nodes := livetest.Machines(len(types), 8)
	for i := range nodes {
		nodes[i].GPUType = types[i]
	}
	c := livetest.New(nodes...)
	for i, a := range asks {
		c.Submit(traces.Job{ID: fmt.Sprintf("%02d", i), User: "u", GPUs: 8, GPUMilli: 1000, GPUTypes: a, Work: time.Hour,
			Estimate: time.Hour})
	}
	c.Advance(time.Second)
	return c
}

// Nodes that are added without a type get the one that the queue asks for, so that it can use them; where that is not
// clear, the types are named.
func TestAddedNodesAreOfTheTypeThatTheQueueAsksFor(t *testing.T) {
	raced.Alone(t)
	a, v := []string{"a100"}, []string{"v100"}
	for name, x := range map[string]struct {
		types []string
		asks  [][]string
		add   string
		want  string // the question, or a part of the mistake
		helps bool
	}{
		"all ask for one":         {a, [][]string{a, a, a, a}, "2x8", "add 2x8:a100", true},
		"nobody asks":             {a, [][]string{nil, nil, nil, nil}, "2x8", "add 2x8:a100", true},
		"some ask":                {a, [][]string{a, nil, a, nil}, "2x8", "add 2x8:a100", true},
		"two types, one is asked": {[]string{"a100", "v100"}, [][]string{v, v, v, v, v}, "2x8", "add 2x8:v100", true},
		"two types, none asked":   {[]string{"a100", "v100"}, [][]string{nil, nil, nil, nil, nil}, "2x8", "add 2x8", true},
		"either will do": {[]string{"a100", "v100", "v100"},
			[][]string{{"a100", "v100"}, {"a100", "v100"}, {"a100", "v100"}, {"a100", "v100"}, {"a100", "v100"}}, "2x8",
			"add 2x8:v100", true},
		"one will do for all": {[]string{"a100", "v100"}, [][]string{v, a, {"a100", "v100"}, a, {"a100", "v100"}, a},
			"2x8", "add 2x8:a100", true},
		"both are asked": {[]string{"a100", "v100"}, [][]string{a, v, a, v, a, v}, "2x8",
			"the types a100, v100; say which ones are added, as 2x8:a100", false},
		"a type is given":   {[]string{"a100", "v100"}, [][]string{a, v, a, v, a, v}, "2x8:v100", "add 2x8:v100", true},
		"other capitals":    {a, [][]string{a, a, a, a}, "2x8:A100", "add 2x8:a100", true},
		"nobody can use it": {a, [][]string{a, a, a, a}, "2x8:h100", "add 2x8:h100", false},
		"untyped":           {[]string{"", ""}, [][]string{nil, nil, nil, nil, nil}, "2x8", "add 2x8", true},
	} {
		st := look(t, eye(t, 1), mixed(x.types, x.asks...))
		r, err := Forecast(t.Context(), quick(), st, []Change{change(t, Add, x.add)})
		if err != nil {
			if !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want %q", name, err, x.want)
			}
			continue
		}
		w := r.WhatIfs[0]
		helps := len(w.Effects) > 0 && w.Effects[0].Change < 0
		if w.Name != x.want || helps != x.helps {
			t.Errorf("%s: %s, effects %+v; want %s, %v", name, w.Name, w.Effects, x.want, x.helps)
		}
		if !x.helps && !strings.Contains(w.Note, "No waiting job can use GPUs of type h100: they ask for a100") {
			t.Errorf("%s: said %q", name, w.Note)
		}
	}
}

// A job that the cluster could never run starts on nodes that are added.
func TestAddedNodesRunWhatNothingCould(t *testing.T) {
	st := look(t, eye(t, 1), mixed([]string{"a100"}, []string{"v100"}))
	r := forecasts(t, quick(), st, change(t, Add, "1x8"), change(t, Add, "1x4"))
	if len(r.Waiting) != 0 || len(r.Blocked) != 1 {
		t.Errorf("%+v, %+v", r.Waiting, r.Blocked)
	}
	if w := r.WhatIfs[0]; w.Name != "add 1x8:v100" || len(w.Jobs) != 1 || w.Jobs[0].ID != "00" ||
		w.Jobs[0].Start[levels-1] != 0 {
		t.Errorf("%+v", w)
	}
	if w := r.WhatIfs[1]; len(w.Jobs)+len(w.Effects) != 0 || w.Note == "" {
		t.Errorf("%+v", w)
	}
}

// Bars of a page lie within it, those of jobs that run for long, too; one thing is not called many, and no section is
// empty.
func TestThePageOfAForecast(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	c.Submit(traces.Job{ID: "long", User: "u", GPUs: 8, GPUMilli: 1000, Work: 90 * time.Hour, Estimate: 99 * time.Hour})
	c.Submit(traces.Job{ID: "<b>", User: "u", GPUs: 1, GPUMilli: 1000, Work: 10 * time.Minute, Estimate: 10 * time.Minute})
	c.Advance(time.Second)
	draw := func(want ...string) string {
		t.Helper()
		st := look(t, eye(t, 1), c)
		r := forecasts(t, quick(), st, change(t, Add, "1x8"), change(t, Drain, "g0"))
		var page, text bytes.Buffer
		if err := r.WriteHTML(&page); err != nil {
			t.Fatal(err)
		}
		if err := r.WriteText(&text, 20); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(page.String(), w) || strings.HasPrefix(w, "0 ") && !strings.Contains(text.String(), w) {
				t.Errorf("%q is not in\n%s\n%s", w, page.String(), text.String())
			}
		}
		for _, m := range regexp.MustCompile(`left:([0-9.]+)%(?:;width:([0-9.]+)%)?`).FindAllStringSubmatch(page.String(),
			-1) {
			from, err := strconv.ParseFloat(m[1], 64)
			wide, _ := strconv.ParseFloat("0"+m[2], 64)
			if err != nil || from < 0 || from+wide > 100.011 {
				t.Errorf("a bar at %s, %s wide", m[1], m[2])
			}
		}
		for _, wrong := range []string{"<ul></ul>", "<b>", " 1 jobs", " 1 run,", "1 are", "(1 GPUs)", "of 1 GPUs"} {
			if strings.Contains(strings.ReplaceAll(page.String(), `<b style`, ""), wrong) {
				t.Errorf("%q is in\n%s", wrong, page.String())
			}
		}
		return page.String()
	}
	page := draw("0 jobs wait, 2 run, 0 are blocked", "No job waits for GPUs.", "What if: add 1x8:A100",
		"No job waits whose start this could change.")
	if n := strings.Count(page, "<span style="); n != 4 {
		t.Errorf("%d ticks", n)
	}
	c.Submit(traces.Job{ID: "next", User: "u", GPUs: 8, GPUMilli: 1000, Work: time.Hour, Estimate: time.Hour})
	c.Advance(time.Second)
	page = draw("1 job waits, 2 run, 0 are blocked", "&lt;b&gt;")
	ticks := regexp.MustCompile(`<span style="left:100.00%">([^<]*)<`).FindAllStringSubmatch(page, -1)
	if len(ticks) != 2 || ticks[0][1] == ticks[1][1] {
		t.Errorf("what waits and what runs have one scale: %v", ticks)
	}
}
