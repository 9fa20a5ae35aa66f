package assess

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/lab/workload"
	"clustergym/ops/incumbent"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/synth"
)

// history generates n jobs for about the given load of a cluster, with limits, and lets a rule that knows the limits
// start them.
func history(t testing.TB, spec cluster.Spec, gpus, n int, load float64, rule string, seed uint64) []traces.Job {
	t.Helper()
	cfg := synth.DefaultConfig()
	cfg.Profile, cfg.Jobs = "hpc", n
	all, err := synth.Generate(cfg, seed)
	if err != nil {
		t.Fatal(err)
	}
	work := 0.0
	for i := range all {
		all[i].GPUs = min(all[i].GPUs, gpus/2)
		work += all[i].GPUHours()
		all[i].Work = all[i].Work.Round(time.Second)
		all[i].Estimate = max(all[i].Estimate, all[i].Work).Round(time.Second)
	}
	f := work / load / float64(gpus) / all[n-1].Submit.Hours()
	for i := range all {
		all[i].Submit = time.Duration(f * float64(all[i].Submit)).Round(time.Second)
	}
	past := &incumbent.Past{Spec: spec, Jobs: all}
	sch, err := incumbent.Rule(rule, "consolidate-best", incumbent.ByLimits)
	if err != nil {
		t.Fatal(err)
	}
	s, err := past.Play(t.Context(), sch, sim.Estimates{Mode: sim.EstimateTrace})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].Start(s.Starts[i])
	}
	return all
}

func spec(t testing.TB, name string) cluster.Spec {
	t.Helper()
	s, err := workload.ClusterSpec(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fifty are 50 jobs, each of a whole node, on two nodes.
func fifty() []traces.Job {
	jobs := make([]traces.Job, 50)
	for i := range jobs {
		jobs[i] = traces.Job{ID: fmt.Sprint(i), User: "u", GPUs: 4, GPUMilli: 1000, Work: 15 * time.Minute,
			Submit: time.Duration(i) * 10 * time.Minute, Estimate: time.Hour}
		jobs[i].Start(jobs[i].Submit)
	}
	return jobs
}

// Nothing is said of records that allow none: one sentence says what is missing and what would help.
func TestBadRecords(t *testing.T) {
	for _, x := range []struct {
		want   string
		change func(o *Options)
	}{
		{"has no time limit", func(o *Options) { o.Jobs[7].Estimate = 0 }},
		{"no row has a start", func(o *Options) {
			for i := range o.Jobs {
				o.Jobs[i].Started = false
			}
		}},
		{"want at least 30", func(o *Options) { o.Jobs = o.Jobs[:20] }},
		{"none of its 50 jobs asks for a GPU", func(o *Options) {
			for i := range o.Jobs {
				o.Jobs[i].GPUs = 0
			}
		}},
		{"held up to 400 GPUs at one time", func(o *Options) {
			for i := range o.Jobs {
				o.Jobs[i].Submit = 0
				o.Jobs[i].Start(time.Hour)
				o.Jobs[i].GPUs = 8
			}
		}},
		{"of the GPU time, can never fit", func(o *Options) {
			for i := range o.Jobs[:10] {
				o.Jobs[i].GPUs = 9
			}
		}},
		{"arrived in one half", func(o *Options) {
			for i := range o.Jobs {
				o.Jobs[i].Submit = time.Duration(i) * time.Second
				o.Jobs[i].Work = time.Second
				o.Jobs[i].Start(o.Jobs[i].Submit)
			}
			o.Jobs[49].Work = 100 * time.Hour
		}},
	} {
		opt := Options{File: "jobs.txt", Jobs: fifty(), Spec: spec(t, "2x4"), Cluster: "2x4",
			Line: func(string) int { return 9 }}
		x.change(&opt)
		_, err := Assess(t.Context(), opt)
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
}

// A record of one day has figures, and no gain is believed.
func TestOneDayIsTooLittle(t *testing.T) {
	a, err := Assess(t.Context(), Options{File: "f", Jobs: fifty(), Spec: spec(t, "2x4"), Cluster: "2x4"})
	if err != nil {
		t.Fatal(err)
	}
	if a.Best != "" || a.Head.Order != nil || a.Recorded.Mean != 0 || !strings.Contains(a.First[1], "so little") {
		t.Errorf("%q, %+v", a.First, a.Head)
	}
	var b bytes.Buffer
	if err := a.HTML(&b); err != nil {
		t.Error(err)
	}
	if _, err := json.Marshal(a); err != nil {
		t.Error(err)
	}
}

// The document and the page are the same for any number of workers.
func TestWorkersChangeNothing(t *testing.T) {
	jobs := history(t, spec(t, "4x8"), 32, 600, .8, "fifo+strict+easy", 5)
	written := func(workers int) string {
		a, err := Assess(t.Context(), Options{File: "f", Jobs: jobs, Spec: spec(t, "4x8"), Cluster: "4x8", Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(a); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.HTML(&b), a.Text(&b)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if one, four := written(1), written(4); one != four {
		t.Error("one worker and four write different documents")
	}
}

// The words of the first screen are those of everybody: none of the glossary's, but for those that need no glossary.
func TestTheFirstScreenNeedsNoGlossary(t *testing.T) {
	everyday := []string{"job", "jobs", "wait", "forecast", "order", "share", "work", "cluster", "run", "start", "limit", "gpu",
		"gpus", "size", "more", "time"}
	b, err := os.ReadFile("../../docs/reference/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	var terms []string
	for line := range strings.Lines(string(b)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && !strings.Contains(cells[1], "---") {
			for term := range strings.SplitSeq(cells[1], ",") {
				term = strings.ToLower(strings.Trim(strings.TrimSpace(term), "`+*"))
				if len(term) > 2 && !slices.Contains(everyday, term) && term != "term" {
					terms = append(terms, term)
				}
			}
		}
	}
	if len(terms) < 50 {
		t.Fatalf("%d terms", len(terms))
	}
	for _, x := range []struct {
		n    int
		load float64
	}{{400, .6}, {900, .85}} {
		jobs := history(t, spec(t, "2x8"), 16, x.n, x.load, "fifo+skip", 3)
		a, err := Assess(t.Context(), Options{File: "f", Jobs: jobs, Spec: spec(t, "2x8"), Cluster: "2x8"})
		if err != nil {
			t.Fatal(err)
		}
		// as if each were offered
		for i := range a.Policies {
			if p := &a.Policies[i]; p.says != "" && p.Of != nil {
				a.First = append(a.First, fmt.Sprintf("%s would make that %s.", p.says, within(*p.Of, p.Then)))
			}
		}
		text := strings.ToLower(strings.Join(a.First, " "))
		for _, term := range terms {
			if regexp.MustCompile(`\b` + regexp.QuoteMeta(term) + `\b`).MatchString(text) {
				t.Errorf("%q is a word of the glossary: %s", term, text)
			}
		}
	}
}

// Names from a file cannot become markup, and the page has no scripts.
func TestNamesStayText(t *testing.T) {
	jobs := fifty()
	for i := range jobs {
		jobs[i].User = "<script>alert(1)</script>\x1b[2J"
	}
	a, err := Assess(t.Context(), Options{File: "<b>", Jobs: jobs, Spec: spec(t, "2x4"), Cluster: "2x4"})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := errors.Join(a.HTML(&b), a.Text(&b)); err != nil {
		t.Fatal(err)
	}
	page, _, _ := strings.Cut(b.String(), "</html>")
	if strings.Contains(page, "<script") || strings.Contains(page, "<b>") && strings.Contains(page, "<b></") ||
		strings.Contains(b.String(), "\x1b") {
		t.Error("a name has become markup, or is not cleaned")
	}
}

// Rows are found in tables of any delimiter.
func TestRows(t *testing.T) {
	for text, want := range map[string]Row{
		"JobID|Submit\n1|2026-01-05T08:00:00\n2|2026-01-05T08:00:10\n": {3, time.Date(2026, 1, 5, 8, 0, 10, 0, time.UTC)},
		"job_id,submit_time\n2,1760000000\n":                           {2, time.Unix(1760000000, 0).UTC()},
		"submit_time;job_id\n17;2\n":                                   {2, time.Time{}},
		"a,b\n2,3\n":                                                   {},
	} {
		if got := Rows(strings.NewReader(text), "2")["2"]; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
